//! A memory snapshot, from its bytes to its figures and to what a person looks at.

use kinetoscope::memory::{By, Explorer, complete, figures};
use kinetoscope::{Snapshot, SnapshotReader, SnapshotReport};
use wasm_bindgen::JsError;
use wasm_bindgen::prelude::wasm_bindgen;

use super::out_of_order;

/// Columns of a frame: a wide window.
const COLUMNS: usize = 1400;

/// One snapshot. Call in order: `push`\*, `finish`, `figures`, `look`, `complete`, then `frame`\*.
#[derive(Default)]
#[wasm_bindgen]
pub struct SnapshotJob {
    reader: Option<SnapshotReader>,
    snapshot: Option<Snapshot>,
    report: Option<SnapshotReport>,
    explorer: Option<Explorer>,
}

#[wasm_bindgen]
impl SnapshotJob {
    /// A job that has read nothing.
    #[must_use]
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self { reader: Some(SnapshotReader::new()), ..Self::default() }
    }

    /// Reads the next bytes of the file.
    ///
    /// # Errors
    /// For a file that is no snapshot.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), JsError> {
        let reader = self.reader.as_mut().ok_or_else(out_of_order)?;
        reader.push(bytes).map_err(|reason| JsError::new(&reason.to_string()))
    }

    /// The number of events.
    ///
    /// # Errors
    /// For a file that is no snapshot.
    pub fn finish(&mut self) -> Result<f64, JsError> {
        let reader = self.reader.take().ok_or_else(out_of_order)?;
        let snapshot = reader.finish().map_err(|reason| JsError::new(&reason.to_string()))?;
        let n = snapshot.traces.iter().map(Vec::len).sum::<usize>();
        self.snapshot = Some(snapshot);
        Ok(n as f64)
    }

    /// Computes what the page shows first, which is what the reference program computes; returns the number of its tables.
    ///
    /// # Errors
    /// Before `finish`.
    pub fn figures(&mut self) -> Result<f64, JsError> {
        let report = figures(self.snapshot.as_ref().ok_or_else(out_of_order)?);
        Ok(n_tables(self.report.insert(report)))
    }

    /// Computes the rest of the report; returns the number of all tables.
    ///
    /// # Errors
    /// Before `figures`.
    pub fn complete(&mut self) -> Result<f64, JsError> {
        let snapshot = self.snapshot.as_ref().ok_or_else(out_of_order)?;
        let first = self.report.take().ok_or_else(out_of_order)?;
        Ok(n_tables(self.report.insert(complete(snapshot, first))))
    }

    /// Prepares what a person looks at; returns the number of states.
    ///
    /// # Errors
    /// Before `figures`, and for a file whose events cannot be charted.
    pub fn look(&mut self) -> Result<f64, JsError> {
        let snapshot = self.snapshot.as_ref().ok_or_else(out_of_order)?;
        let device = snapshot.traces.iter().position(|trace| !trace.is_empty()).unwrap_or_default();
        let report = self.report.as_ref().ok_or_else(out_of_order)?;
        let chart = report.chart(snapshot, device as i64).ok_or_else(out_of_order)?;
        self.explorer = Some(Explorer::of_chart(snapshot, device as i64, chart));
        let explorer = self.explorer.as_ref().ok_or_else(out_of_order)?;
        Ok(explorer.chart().len() as f64)
    }

    /// The columns of a window, and the state in its middle; returns the blocks in use there. The edges are shares of the axis.
    ///
    /// # Errors
    /// Before `look`.
    pub fn frame(&mut self, from: f64, to: f64) -> Result<f64, JsError> {
        let snapshot = self.snapshot.as_ref().ok_or_else(out_of_order)?;
        let explorer = self.explorer.as_mut().ok_or_else(out_of_order)?;
        let n = explorer.chart().len() as f64;
        let columns = explorer.chart().columns(from * n, to * n, COLUMNS, By::Event);
        let middle = columns.get(COLUMNS / 2).map_or(0, |column| column.at);
        explorer.go(snapshot, middle);
        Ok(explorer.walk().map_or(0, |walk| walk.held().count()) as f64)
    }
}

fn n_tables(report: &SnapshotReport) -> f64 {
    report.sections().iter().map(|section| section.tables.len()).sum::<usize>() as f64
}
