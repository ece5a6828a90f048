//! What it costs to learn a result and to trace a call, and how that grows with the bytes.
//!
//!     cargo bench -p toolgate-flow

use divan::{Bencher, counter::BytesCount};
use serde_json::{Value, json};
use toolgate_flow::{DataOrigin, Memory};

fn main() {
    divan::main();
}

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

fn rows(bytes: usize) -> Value {
    let row = |number: usize| json!({ "id": number * 7919, "name": format!("customer {number}"), "note": format!("paid invoice {} late", number * 31) });
    json!((0..bytes / 70).map(row).collect::<Vec<_>>())
}

#[divan::bench(args = SIZES)]
fn learn(bencher: Bencher<'_, '_>, bytes: usize) {
    let result = rows(bytes);
    bencher.counter(BytesCount::new(result.to_string().len())).bench_local(|| {
        let mut memory = Memory::default();
        memory.learn(DataOrigin::new(1, "t"), &result);
        memory
    });
}

#[divan::bench(args = SIZES)]
fn trace(bencher: Bencher<'_, '_>, bytes: usize) {
    let mut memory = Memory::default();
    memory.learn(DataOrigin::new(1, "t"), &rows(1_000_000));
    let arguments = json!({ "text": rows(bytes).to_string() });
    bencher.counter(BytesCount::new(bytes)).bench_local(|| memory.trace("t", &arguments));
}
