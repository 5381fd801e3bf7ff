//! How a [`crate::protocol`] value travels: an object whose `body` is the value and whose other fields are
//! handles (`File`, `Blob`) that structured cloning passes by reference. The columns of tables are byte strings, which
//! are moved (ADR 16).

use js_sys::{Array, Object, Reflect, Uint8Array};
use serde::{Serialize, de::DeserializeOwned};
use serde_wasm_bindgen::Serializer;
use wasm_bindgen::{JsCast, JsValue};

const BODY: &str = "body";

/// Wraps `value`. Integers past 2^53 (times on a file's clock) cross as `BigInt`, exactly.
///
/// # Errors
/// When the value cannot be expressed in JavaScript; no value of the protocol is such.
pub fn pack<T: Serialize>(value: &T) -> Result<Object, JsValue> {
    let serializer = Serializer::new().serialize_large_number_types_as_bigints(true);
    let envelope = Object::new();
    Reflect::set(&envelope, &BODY.into(), &value.serialize(&serializer)?)?;
    Ok(envelope)
}

/// Unwraps the value of a message.
///
/// # Errors
/// When the message is not one of this protocol, or of another version of it.
pub fn unpack<T: DeserializeOwned>(message: &JsValue) -> Result<T, JsValue> {
    Ok(serde_wasm_bindgen::from_value(Reflect::get(message, &BODY.into())?)?)
}

/// The buffers of the byte strings in a message: the columns of its tables. They can be moved instead of copied.
#[must_use]
pub fn buffers(message: &Object) -> Array {
    let buffers = Array::new();
    collect(message, &buffers);
    buffers
}

fn collect(value: &JsValue, into: &Array) {
    if let Some(bytes) = value.dyn_ref::<Uint8Array>() {
        into.push(&bytes.buffer());
    } else if let Some(values) = value.dyn_ref::<Array>() {
        values.iter().for_each(|value| collect(&value, into));
    } else if let Some(object) = value.dyn_ref::<Object>()
        // (Handles such as a `Blob` have no fields of their own.)
        && !value.is_function()
    {
        Object::values(object).iter().for_each(|value| collect(&value, into));
    }
}

/// Adds a handle to an envelope.
///
/// # Errors
/// Never for an object made by [`pack`].
pub fn attach(envelope: &Object, name: &str, handle: &JsValue) -> Result<(), JsValue> {
    Reflect::set(envelope, &name.into(), handle).map(drop)
}

/// The handle of that name, if there is one.
#[must_use]
pub fn attached(message: &JsValue, name: &str) -> Option<JsValue> {
    Reflect::get(message, &name.into())
        .ok()
        .filter(|value| !value.is_undefined() && !value.is_null())
}
