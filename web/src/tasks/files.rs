//! Files that a person drops or picks; folders are walked.

use gloo::utils::document;
use js_sys::{Array, Function, JSON, Promise};
use kinetoscope::is_no_trace_by_name;
use kinetoscope::report::units;
use kinetoscope::trace::sort_by_key;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{
    DataTransfer, File, FileList, FileSystemDirectoryEntry, FileSystemEntry, FileSystemFileEntry,
    HtmlElement,
};

use super::Tasks;
use super::browser::message_of;
use crate::protocol::Failure;
use crate::state::{Action, ServerArgs};

/// Id of the hidden file input.
pub const INPUT_ID: &str = "file-input";

/// Id of the hidden input for a folder.
pub const FOLDER_INPUT_ID: &str = "folder-input";

/// The launch flags of a server, which lie beside its traces.
pub const SERVER_ARGS: &str = "server_args.json";

/// The list of captures that lies beside them.
const EXECUTION_DETAILS: &str = "execution_details.json";

/// A larger file holds no launch flags.
const MOST_FLAGS_BYTES: f64 = 4e6;

/// Folders deeper than this are not walked.
const DEEPEST: usize = 8;

/// The browser's file dialog.
pub fn pick() {
    click(INPUT_ID);
}

/// The browser's dialog for a folder.
pub fn pick_folder() {
    click(FOLDER_INPUT_ID);
}

fn click(id: &str) {
    if let Some(input) = document().get_element_by_id(id)
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
            let (files, n_skipped) = walked(entries).await;
            tasks.open_of_folder(files, n_skipped);
        });
    }

    /// Opens the traces among the files of a folder that was picked.
    pub fn open_folder(&self, files: Vec<File>) {
        let n_all = files.len();
        let files: Vec<File> = files.into_iter().filter(|file| is_wanted(&file.name())).collect();
        let n_skipped = n_all - files.len();
        self.open_of_folder(files, n_skipped);
    }

    fn open_of_folder(&self, files: Vec<File>, n_skipped: usize) {
        self.announce(folder_text(files.len(), n_skipped));
        self.open(files);
    }
}

/// Whether a file of a folder is opened: by its name it can be a trace, or belongs to one.
fn is_wanted(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == SERVER_ARGS || name == EXECUTION_DETAILS || !is_no_trace_by_name(&name)
}

/// "Opened 12 files of the folder; 3 other files skipped".
fn folder_text(n_opened: usize, n_skipped: usize) -> String {
    let skipped = match n_skipped {
        0 => String::new(),
        n => format!("; {} skipped", units::plural(n as u64, "other file", "other files")),
    };
    match n_opened {
        0 => format!("No .json or .json.gz file in the folder{skipped}"),
        n => format!("Opened {} of the folder{skipped}", units::plural(n as u64, "file", "files")),
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
                    what: format!("{SERVER_ARGS} is larger than 4 MB, or was moved or deleted."),
                    advice: "Choose the file written by the server again.".into(),
                    ..Failure::default()
                });
                return;
            };
            let fault = fault_of(&text);
            tasks.dispatch(Action::ServerArgsDropped(ServerArgs { text, fault }));
            tasks.announce(format!("Loaded launch flags from {SERVER_ARGS}"));
        });
    }
}

/// Why a text cannot be launch flags.
fn fault_of(text: &str) -> Option<String> {
    match JSON::parse(text) {
        Ok(value) if value.is_object() && !Array::is_array(&value) => None,
        Ok(_) => Some("it is not a JSON object".to_owned()),
        Err(error) => Some(format!("it is not JSON: {}", message_of(&error))),
    }
}

/// Every file below `entries` whose name can be a trace's, and the number of the others. Files that were dropped by
/// themselves are opened whatever their name.
async fn walked(entries: Vec<FileSystemEntry>) -> (Vec<File>, usize) {
    let (mut files, mut n_skipped) = (Vec::new(), 0);
    let mut waiting: Vec<(FileSystemEntry, usize)> =
        entries.into_iter().rev().map(|entry| (entry, 0)).collect();
    while let Some((entry, depth)) = waiting.pop() {
        if entry.is_file() {
            if depth == 0 || is_wanted(&entry.name()) {
                files.extend(file_of(entry.unchecked_into()).await);
            } else {
                n_skipped += 1;
            }
        } else if depth < DEEPEST {
            let children = children_of(&entry.unchecked_into()).await;
            waiting.extend(children.into_iter().rev().map(|child| (child, depth + 1)));
        }
    }
    (files, n_skipped)
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
    sort_by_key(&mut children, FileSystemEntry::name);
    children
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_files_of_a_folder_are_counted() {
        assert_eq!(folder_text(12, 0), "Opened 12 files of the folder");
        assert_eq!(folder_text(1, 3), "Opened 1 file of the folder; 3 other files skipped");
        assert_eq!(
            folder_text(0, 1),
            "No .json or .json.gz file in the folder; 1 other file skipped"
        );
        assert!(is_wanted("Server_Args.json") && is_wanted("run.json.gz") && !is_wanted("a.png"));
    }
}
