//! Any JSON as the definition of a tool: no panic, no endless work, no endless text.
//!
//! ```text
//! cd crates/toolgate-bindings && cargo +nightly fuzz run declarations -- -timeout=10
//! ```

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolgate_bindings::{
    MAX_DECLARATION_BYTES, Output, Shape, ToolApi, parameters, python, typescript,
};

fuzz_target!(|bytes: &[u8]| {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return };
    let mut shape = Shape::of(&value);
    shape.observe(&value);
    let outputs = [Output::Declared(&value), Output::Learned(&shape), Output::Unknown];
    for output in outputs {
        let tool = ToolApi {
            name: value["name"].as_str().unwrap_or("tool"),
            description: value["description"].as_str(),
            input_schema: value.get("inputSchema").unwrap_or(&value),
            output,
        };
        for text in [typescript(&[tool]), python(&[tool])] {
            assert!(text.len() <= MAX_DECLARATION_BYTES);
            // Every comment that is opened is closed: what follows the last one is code.
            assert!(text.ends_with('\n'));
        }
    }
    parameters(&value);
});
