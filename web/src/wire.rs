//! How a [`crate::protocol`] value travels: an object whose `body` is the value as bytes (postcard) and whose other
//! fields are handles (`File`, `Blob`) that structured cloning passes by reference. Bytes need no object per value and
//! no name per field, and the buffer is moved (ADR 16).

use js_sys::{Object, Reflect, Uint8Array};
use serde::{Serialize, de::DeserializeOwned};
use wasm_bindgen::{JsCast, JsValue};

const BODY: &str = "body";

/// A message and the buffer in it that can be moved instead of copied.
pub struct Packed {
    /// The message.
    pub envelope: Object,
    /// The buffer of its body.
    pub buffer: Object,
}

/// Wraps `value`.
///
/// # Errors
/// When the value cannot be written as bytes; no value of the protocol is such.
pub fn pack<T: Serialize>(value: &T) -> Result<Packed, JsValue> {
    let bytes = postcard::to_allocvec(value).map_err(|error| error.to_string())?;
    let body = Uint8Array::from(bytes.as_slice());
    let buffer = body.buffer().into();
    let envelope = Object::new();
    Reflect::set(&envelope, &BODY.into(), &body)?;
    Ok(Packed { envelope, buffer })
}

/// Unwraps the value of a message.
///
/// # Errors
/// When the message is not one of this protocol, or of another version of it.
pub fn unpack<T: DeserializeOwned>(message: &JsValue) -> Result<T, JsValue> {
    let body: Uint8Array = Reflect::get(message, &BODY.into())?.dyn_into()?;
    Ok(postcard::from_bytes(&body.to_vec()).map_err(|error| error.to_string())?)
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
