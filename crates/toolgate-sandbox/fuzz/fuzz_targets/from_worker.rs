//! What a worker may send: any bytes, in any pieces. `cargo fuzz run from_worker`
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolgate_sandbox::frame::{Decoder, FromWorker};

const LARGEST: usize = 1 << 20;

fuzz_target!(|input: &[u8]| {
    // The first byte says how the rest is split.
    let Some((&split, stream)) = input.split_first() else { return };
    let mut decoder = Decoder::new(LARGEST);
    for piece in stream.chunks(usize::from(split) + 1) {
        let space = decoder.space(piece.len());
        space.extend_from_slice(piece);
        assert!(space.capacity() <= 4 * (stream.len() + 64));
        loop {
            match decoder.next_frame() {
                Ok(Some((kind, body))) => round_trip(kind, body),
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
});

/// What was understood can be said again, and is then understood as the same.
fn round_trip(kind: u8, body: &[u8]) {
    let Ok(frame) = FromWorker::decode(kind, body) else { return };
    let mut said = Vec::new();
    frame.encode(&mut said);
    let mut decoder = Decoder::new(usize::MAX);
    decoder.space(said.len()).extend_from_slice(&said);
    let (kind, body) = decoder.next_frame().expect("a frame").expect("all of it");
    let again = FromWorker::decode(kind, body).expect("the same frame");
    assert_eq!(format!("{again:?}"), format!("{frame:?}"));
}
