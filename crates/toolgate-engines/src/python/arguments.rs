//! A call as Python writes it, as the JSON object that a tool takes.

use monty_types::{ExcType, MontyException, MontyObject};
use serde_json::value::RawValue;

use super::value::{self, Strictness};
use crate::engine::Function;

/// Binds positional and named arguments, as Python does and in its words where it refuses.
pub(super) fn bind(
    function: &Function,
    positional: &[MontyObject],
    named: &[(MontyObject, MontyObject)],
) -> Result<Box<RawValue>, MontyException> {
    let name = &function.name;
    if positional.len() > function.parameters.len() {
        // One dictionary where the tool has no order of parameters: the object itself was meant.
        if let ([MontyObject::Dict(_)], [], true) =
            (positional, named, function.parameters.is_empty())
        {
            return value::to_json(&positional[0], Strictness::Argument)
                .map_err(|error| type_error(format!("{name}(): {error}")));
        }
        return Err(type_error(too_many(function, positional.len())));
    }
    let mut text = String::from("{");
    for (parameter, argument) in function.parameters.iter().zip(positional) {
        push(&mut text, name, parameter, argument)?;
    }
    let taken = &function.parameters[..positional.len()];
    for (key, argument) in named {
        let MontyObject::String(key) = key else {
            return Err(type_error("keywords must be strings".to_owned()));
        };
        if taken.contains(key) {
            return Err(type_error(format!("{name}() got multiple values for argument '{key}'")));
        }
        push(&mut text, name, key, argument)?;
    }
    text.push('}');
    RawValue::from_string(text).map_err(|error| type_error(format!("{name}(): {error}")))
}

fn push(
    text: &mut String,
    name: &str,
    key: &str,
    argument: &MontyObject,
) -> Result<(), MontyException> {
    if text.len() > 1 {
        text.push(',');
    }
    value::write_string(text, key);
    text.push(':');
    value::write_value(text, argument, Strictness::Argument, value::DEPTH_LIMIT)
        .map_err(|error| type_error(format!("{name}() argument '{key}': {error}")))
}

fn too_many(function: &Function, given: usize) -> String {
    let name = &function.name;
    let were = if given == 1 { "was" } else { "were" };
    match function.parameters.len() {
        0 => format!("{name}() takes 0 positional arguments but {given} {were} given"),
        1 => format!("{name}() takes 1 positional argument but {given} {were} given"),
        most => {
            format!("{name}() takes from 0 to {most} positional arguments but {given} {were} given")
        }
    }
}

fn type_error(message: String) -> MontyException {
    MontyException::new(ExcType::TypeError, Some(message))
}
