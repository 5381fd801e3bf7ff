//! Files that a person drops or picks; folders are walked.

use gloo::utils::document;
use js_sys::{Array, Function, Promise};
use kinetoscope::is_no_trace_by_name;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{
    DataTransfer, File, FileList, FileSystemDirectoryEntry, FileSystemEntry, FileSystemFileEntry,
    HtmlElement,
};

use super::Tasks;
use crate::protocol::Failure;
use crate::state::Action;

/// Id of the hidden file input.
pub const INPUT_ID: &str = "file-input";

/// The launch flags of a server, which lie beside its traces.
pub const SERVER_ARGS: &str = "server_args.json";

/// What the captures beside it are.
const EXECUTION_DETAILS: &str = "execution_details.json";

/// Launch flags above this size are none.
const MOST_FLAGS_BYTES: f64 = 4e6;

/// Folders deeper than this are not walked.
const DEEPEST: usize = 8;

/// The browser's file dialog.
pub fn pick() {
    if let Some(input) = document().get_element_by_id(INPUT_ID)
        && let Some(input) = input.dyn_ref::<HtmlElement>()
    {
        input.click();
    }
}

/// The files of an input or a drop.
#[must_use]
pub fn listed(list: Option<FileList>) -> Vec<File> {
    let Some(list) = list else { return Vec::new() };
    (0..list.length()).filter_map(|place| list.get(place)).collect()
}

impl Tasks {
    /// Opens what was dropped.
    pub fn open_dropped(&self, data: &DataTransfer) {
        // The list is empty as soon as the event is over, so every entry is taken before the first wait.
        let items = data.items();
        let entries: Vec<FileSystemEntry> = (0..items.length())
            .filter_map(|place| items.get(place)?.webkit_get_as_entry().ok().flatten())
            .collect();
        if !entries.iter().any(FileSystemEntry::is_directory) {
            self.open(listed(data.files()));
            return;
        }
        let tasks = self.clone();
        spawn_local(async move {
            let files = walked(entries).await;
            if files.is_empty() {
                tasks.announce("There is no .json or .json.gz file in that folder");
            }
            tasks.open(files);
        });
    }
}

impl Tasks {
    /// Reads the launch flags of a server.
    pub fn take_server_args(&self, file: File) {
        let tasks = self.clone();
        spawn_local(async move {
            let text = match file.size() <= MOST_FLAGS_BYTES {
                true => JsFuture::from(file.text()).await.ok().and_then(|text| text.as_string()),
                false => None,
            };
            let Some(text) = text else {
                tasks.notice(Failure {
                    title: "The launch flags cannot be read".into(),
                    what: format!("{SERVER_ARGS} is too large for flags, or it is gone."),
                    advice: "Drop the file that the server wrote, again.".into(),
                    ..Failure::default()
                });
                return;
            };
            tasks.dispatch(Action::ServerArgsDropped(text));
            tasks.announce(format!("Took the launch flags from {SERVER_ARGS}"));
        });
    }
}

/// Every trace-like file below `entries`; files dropped by themselves are taken whatever their name.
async fn walked(entries: Vec<FileSystemEntry>) -> Vec<File> {
    let mut files = Vec::new();
    let mut waiting: Vec<(FileSystemEntry, usize)> =
        entries.into_iter().rev().map(|entry| (entry, 0)).collect();
    while let Some((entry, depth)) = waiting.pop() {
        if entry.is_file() {
            let name = entry.name().to_lowercase();
            let tells = name == SERVER_ARGS || name == EXECUTION_DETAILS;
            if depth == 0 || tells || !is_no_trace_by_name(&name) {
                files.extend(file_of(entry.unchecked_into()).await);
            }
        } else if depth < DEEPEST {
            let children = children_of(&entry.unchecked_into()).await;
            waiting.extend(children.into_iter().rev().map(|child| (child, depth + 1)));
        }
    }
    files
}

async fn file_of(entry: FileSystemFileEntry) -> Option<File> {
    let promise = Promise::new(&mut |resolve: Function, reject: Function| {
        entry.file_with_callback_and_callback(&resolve, &reject);
    });
    JsFuture::from(promise).await.ok()?.dyn_into().ok()
}

/// A reader gives its entries in batches, an empty one at the end.
async fn children_of(folder: &FileSystemDirectoryEntry) -> Vec<FileSystemEntry> {
    let reader = folder.create_reader();
    let mut children: Vec<FileSystemEntry> = Vec::new();
    loop {
        let promise = Promise::new(&mut |resolve: Function, reject: Function| {
            if let Err(error) = reader.read_entries_with_callback_and_callback(&resolve, &reject) {
                let _rejected = reject.call1(&JsValue::NULL, &error);
            }
        });
        let batch =
            JsFuture::from(promise).await.map(|batch| Array::from(&batch)).unwrap_or_default();
        if batch.length() == 0 {
            break;
        }
        children.extend(batch.iter().map(JsCast::unchecked_into::<FileSystemEntry>));
    }
    children.sort_by_key(FileSystemEntry::name);
    children
}
