//! What a row is about, for whoever asks for more about it.

/// What a row of a table is about. The page asks a worker about a row by its key and never reads it out of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKey<'a> {
    /// An event, by its number in the file.
    Event(u32),
    /// A kernel of a stage.
    Kernel {
        /// Id of the stage; empty for all of them.
        stage: &'a str,
        /// Id of the device, where the file has several.
        device: Option<&'a str>,
        /// The kernel's name.
        name: &'a str,
    },
    /// All calls of an op, by its name.
    Op(&'a str),
}
