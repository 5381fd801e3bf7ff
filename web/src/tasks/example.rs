//! The example trace that comes with the page.

use gloo::utils::window;
use js_sys::Array;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{File, Response};

use super::Tasks;
use super::browser::{absolute, message_of};
use crate::protocol::Failure;
use crate::state::{Action, View};

/// Where it is, beside the page, and its name on the card.
const PATH: &str = "assets/example.json.gz";
const NAME: &str = "example.json.gz";

impl Tasks {
    /// Opens the example as if it had been dropped.
    pub fn open_example(&self) {
        let tasks = self.clone();
        spawn_local(async move {
            match fetch().await {
                Ok(file) => {
                    tasks.dispatch(Action::Shown(View::Overview));
                    tasks.open([file]);
                }
                Err(error) => tasks.notice(Failure {
                    title: "The example could not be loaded".into(),
                    what: "The server of this page did not return it.".into(),
                    place: Some(PATH.into()),
                    advice: "Open your own trace, or reload the page.".into(),
                    excerpt: Some(message_of(&error)),
                }),
            }
        });
    }
}

async fn fetch() -> Result<File, JsValue> {
    let url = absolute(PATH).ok_or("the page has no address")?;
    let response: Response = JsFuture::from(window().fetch_with_str(&url)).await?.dyn_into()?;
    if !response.ok() {
        return Err(format!("HTTP status {}", response.status()).into());
    }
    let blob = JsFuture::from(response.blob()?).await?;
    File::new_with_blob_sequence(&Array::of1(&blob), NAME)
}
