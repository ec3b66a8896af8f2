//! Compiled in when the build script found a tool missing: fails when code is generated, with the cure as its message.
//!
//! Checking and documenting need no native library and pass; whatever would have to link it stops here, not at a page of
//! undefined symbols.

struct Stop<T>(core::marker::PhantomData<T>);

impl<T> Stop<T> {
    // Evaluated once `T` is known, which is when code is generated.
    const MESSAGE: () = panic!(env!("LLAMA_SYS_UNBUILT"));
}

fn stop<T>() {
    let () = Stop::<T>::MESSAGE;
}

#[used]
static STOP: fn() = stop::<()>;
