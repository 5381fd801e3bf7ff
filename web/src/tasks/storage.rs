//! What the browser stores between visits, as JSON. The browser reads and writes it: a JSON library of our own would be a
//! part of the page's download.

use gloo::utils::window;
use js_sys::{Array, JSON, Object, Reflect};
use wasm_bindgen::{JsCast, JsValue};
use web_sys::Storage;

/// Some browsers refuse the store altogether (private windows, blocked cookies); then nothing is kept.
fn store() -> Option<Storage> {
    window().local_storage().ok().flatten()
}

/// The value of a key.
pub fn get(key: &str) -> Option<JsValue> {
    let text = store()?.get_item(key).ok().flatten()?;
    JSON::parse(&text).ok()
}

/// Stores a value.
pub fn set(key: &str, value: &JsValue) {
    if let (Some(store), Ok(text)) = (store(), JSON::stringify(value)) {
        let _kept = store.set_item(key, &String::from(text));
    }
}

/// Forgets a key.
pub fn delete(key: &str) {
    if let Some(store) = store() {
        let _gone = store.remove_item(key);
    }
}

/// The members of an object; those that `read` does not accept are left out.
pub fn members<T>(value: &JsValue, read: fn(&JsValue) -> Option<T>) -> Vec<(String, T)> {
    let Some(object) = value.dyn_ref::<Object>() else { return Vec::new() };
    let member = |member: JsValue| {
        let member = Array::from(&member);
        Some((member.get(0).as_string()?, read(&member.get(1))?))
    };
    Object::entries(object).iter().filter_map(member).collect()
}

/// An object with these members.
pub fn object<'a>(members: impl Iterator<Item = (&'a String, JsValue)>) -> JsValue {
    let object = Object::new();
    for (key, value) in members {
        // (A plain object takes every member.)
        let _set = Reflect::set(&object, &key.into(), &value);
    }
    object.into()
}
