//! Saving a blob under a name.

use gloo::timers::callback::Timeout;
use gloo::utils::document;
use wasm_bindgen::JsCast;
use web_sys::{Blob, HtmlAnchorElement, Url};

/// How long the browser may take to begin reading. The data of a blob URL stays in use until it is revoked.
const KEEP_MS: u32 = 120_000;

/// Has the browser save `blob` as `name`.
pub fn save(blob: &Blob, name: &str) {
    let Ok(url) = Url::create_object_url_with_blob(blob) else { return };
    let link =
        document().create_element("a").ok().and_then(|a| a.dyn_into::<HtmlAnchorElement>().ok());
    if let Some(link) = link {
        link.set_href(&url);
        link.set_download(name);
        link.click();
    }
    Timeout::new(KEEP_MS, move || {
        let _revoked = Url::revoke_object_url(&url);
    })
    .forget();
}
