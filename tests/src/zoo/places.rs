//! Places in a cycle, written as the sines and cosines of 15 of their multiples, so that going on by some places is a
//! rotation, which is linear.

use std::f32::consts::TAU;

/// The length of the cycle that the multiples are chosen for: no two places have more than 0.18 in common.
pub(super) const CYCLE: usize = 80;
pub(super) const MULTIPLES: [u32; 15] = [3, 4, 5, 7, 9, 10, 15, 16, 17, 23, 25, 31, 34, 35, 37];
/// The entries a place takes.
pub(super) const PLACE: usize = 2 * MULTIPLES.len();
/// The entries that a place is written as.
pub(super) fn written(place: usize) -> [f32; PLACE] {
    let mut entries = [0.0; PLACE];
    for (pair, multiple) in entries.chunks_exact_mut(2).zip(MULTIPLES) {
        let (sin, cos) = (TAU * ((multiple * place as u32) % CYCLE as u32) as f32 / CYCLE as f32).sin_cos();
        pair.copy_from_slice(&[cos, sin]);
    }
    entries
}

/// Row `index` of the rotation that goes on by `places`.
pub(super) fn rotation(index: usize, places: usize) -> [f32; PLACE] {
    let by = written(places);
    let (cos, sin) = (by[index / 2 * 2], by[index / 2 * 2 + 1]);
    let mut row = [0.0; PLACE];
    row[index / 2 * 2..][..2].copy_from_slice(&if index.is_multiple_of(2) { [cos, -sin] } else { [sin, cos] });
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_little_in_common_and_rotate_into_each_other() {
        let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>() / MULTIPLES.len() as f32;
        for place in 0..CYCLE {
            for other in 0..CYCLE {
                let common = product(&written(place), &written(other));
                assert!(if place == other { common > 0.999 } else { common < 0.18 }, "{place} {other}: {common}");
            }
            let rotated: Vec<f32> = (0..PLACE)
                .map(|index| rotation(index, 7).iter().zip(written(place)).map(|(x, y)| x * y).sum())
                .collect();
            assert!(product(&rotated, &written((place + 7) % CYCLE)) > 0.999);
        }
    }
}
