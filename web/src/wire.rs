//! How a [`crate::protocol`] value travels: an object whose `body` is the value and whose other fields are
//! handles (`File`, `Blob`) that structured cloning passes by reference.

use js_sys::{Object, Reflect};
use serde::{Serialize, de::DeserializeOwned};
use serde_wasm_bindgen::Serializer;
use wasm_bindgen::JsValue;

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
