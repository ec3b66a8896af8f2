//! How weights are stored: ggml's types by their numbers, from the table in the pinned `ggml.c`.

use serde::Serialize;

/// How the weights of a tensor are stored: in blocks of some weights, each of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct TensorType {
    /// ggml's name of the type.
    pub name: &'static str,
    /// Weights in a block.
    pub block: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
}

impl TensorType {
    /// The type with this number; `None` where there never was one, or is no more.
    pub fn find(id: u32) -> Option<Self> {
        TYPES.get(usize::try_from(id).ok()?).copied().filter(|kind| kind.block > 0)
    }

    /// Whether values are stored in blocks of several.
    pub fn is_quantized(self) -> bool {
        self.block > 1
    }

    /// The bytes of so many weights, whole blocks of them.
    pub(crate) fn bytes(self, elements: u64) -> Option<u64> {
        (elements / self.block).checked_mul(self.block_bytes)
    }
}

const fn of(name: &'static str, block: u64, block_bytes: u64) -> TensorType {
    TensorType { name, block, block_bytes }
}

/// A number that once was a type.
const GONE: TensorType = of("removed", 0, 0);

const TYPES: [TensorType; 44] = [
    of("f32", 1, 4),
    of("f16", 1, 2),
    of("q4_0", 32, 18),
    of("q4_1", 32, 20),
    GONE,
    GONE,
    of("q5_0", 32, 22),
    of("q5_1", 32, 24),
    of("q8_0", 32, 34),
    of("q8_1", 32, 36),
    of("q2_K", 256, 84),
    of("q3_K", 256, 110),
    of("q4_K", 256, 144),
    of("q5_K", 256, 176),
    of("q6_K", 256, 210),
    of("q8_K", 256, 292),
    of("iq2_xxs", 256, 66),
    of("iq2_xs", 256, 74),
    of("iq3_xxs", 256, 98),
    of("iq1_s", 256, 50),
    of("iq4_nl", 32, 18),
    of("iq3_s", 256, 110),
    of("iq2_s", 256, 82),
    of("iq4_xs", 256, 136),
    of("i8", 1, 1),
    of("i16", 1, 2),
    of("i32", 1, 4),
    of("i64", 1, 8),
    of("f64", 1, 8),
    of("iq1_m", 256, 56),
    of("bf16", 1, 2),
    GONE,
    GONE,
    GONE,
    of("tq1_0", 256, 54),
    of("tq2_0", 256, 66),
    GONE,
    GONE,
    GONE,
    of("mxfp4", 32, 17),
    of("nvfp4", 64, 36),
    of("q1_0", 128, 18),
    of("q2_0", 64, 18),
    of("f8_e4m3", 1, 1),
];
