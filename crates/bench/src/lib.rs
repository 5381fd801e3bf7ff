//! One job on one file, stage by stage, for the driver of `cargo xtask bench` (`web/tests/bench.mjs`).
//!
//! Constraints: the same code and the same compiler settings as the page's worker; functions return only numbers,
//! so that the conversion of results to JavaScript is not measured.

mod snapshot;

use kinetoscope::artifacts::{ArtifactOptions, Triaged, UserFacts, triage_artifacts};
use kinetoscope::trace::Trace;
use kinetoscope::{
    Decoded, Decoder, Details, DetailsReader, Options, Output, PlanOptions, RepairPlan, Repairer,
    Sources, TriageOptions,
};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsError, JsValue};

/// Bytes of an output block, as in the worker.
const BLOCK: usize = 4 << 20;

/// The linear memory. It never shrinks, so its size after a stage is the peak up to there.
#[must_use]
#[wasm_bindgen]
pub fn linear_memory() -> JsValue {
    wasm_bindgen::memory()
}

/// One job. Call the stages in order: `push`\*, `finish_decode`, `analyze`, `plan`, then
/// `start_repair`, `push_repair`\*, `finish_repair`. Of a pair, the mapping or capture comes first:
/// `push`\*, `finish_decode`, then `keep_as_mapping`, or its arguments and `keep_as_capture`; then the measured one with
/// its arguments (`start_details`, `push_details`\*, `finish_details`), and `triage`.
///
/// The decoded trace and the plan live until the process ends, which does one job: the repairer can then borrow
/// both between two calls.
#[derive(Default)]
#[wasm_bindgen]
pub struct Job {
    decoder: Option<Decoder>,
    decoded: Option<&'static Decoded>,
    mapping: Option<&'static Trace>,
    captures: Vec<&'static Trace>,
    capture_details: Vec<Details>,
    reader: Option<DetailsReader<'static>>,
    details: Option<Details>,
    plan: Option<&'static RepairPlan>,
    repairer: Option<Repairer<'static>>,
    out: Vec<u8>,
    n_bytes_out: u64,
}

#[wasm_bindgen]
impl Job {
    /// A job that has read nothing.
    #[must_use]
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self { decoder: Some(Decoder::new()), ..Self::default() }
    }

    /// Reads the next bytes of the file.
    ///
    /// # Errors
    /// For a file that is not a trace.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), JsError> {
        let decoder = self.decoder.as_mut().ok_or_else(out_of_order)?;
        decoder.push(bytes).map_err(|reason| JsError::new(&reason.to_string()))
    }

    /// The number of events.
    ///
    /// # Errors
    /// For a file that is not a trace.
    pub fn finish_decode(&mut self) -> Result<u32, JsError> {
        let decoder = self.decoder.take().ok_or_else(out_of_order)?;
        let decoded = decoder.finish().map_err(|reason| JsError::new(&reason.to_string()))?;
        let decoded: &Decoded = Box::leak(Box::new(decoded));
        self.decoded = Some(decoded);
        Ok(decoded.trace.len() as u32)
    }

    /// Bytes that the trace holds on the heap.
    ///
    /// # Errors
    /// Before `finish_decode`.
    pub fn heap_bytes(&self) -> Result<f64, JsError> {
        Ok(self.decoded()?.trace.heap_bytes() as f64)
    }

    /// Runs every analysis and builds the tables of the page; returns the number of rows of the kernel table.
    ///
    /// # Errors
    /// Before `finish_decode`.
    pub fn analyze(&self) -> Result<u32, JsError> {
        let report = kinetoscope::analyze(&self.decoded()?.trace, &Options::default());
        let sections = report.sections();
        let tables = sections.iter().flat_map(|section| &section.tables);
        Ok(tables.filter(|table| table.id == "kernels").map(|table| table.n_rows() as u32).sum())
    }

    /// Plans the repair; returns the number of slices that Perfetto v51 to v56 drop from the original file.
    ///
    /// # Errors
    /// Before `finish_decode`.
    pub fn plan(&mut self) -> Result<f64, JsError> {
        let plan = kinetoscope::plan_repair(&self.decoded()?.trace, &PlanOptions::default());
        let plan: &RepairPlan = Box::leak(Box::new(plan));
        self.plan = Some(plan);
        Ok(plan.before.drops_v51_v56() as f64)
    }

    /// Begins the second pass, which reads arguments that have no column.
    ///
    /// # Errors
    /// Before `finish_decode`.
    pub fn start_details(&mut self) -> Result<(), JsError> {
        self.reader = Some(DetailsReader::new(self.decoded()?));
        Ok(())
    }

    /// The same with what the figures of the CPU need.
    ///
    /// # Errors
    /// Before `finish_decode`.
    pub fn start_host_details(&mut self) -> Result<(), JsError> {
        self.reader = Some(DetailsReader::with_host(self.decoded()?, kinetoscope::wants_inputs));
        Ok(())
    }

    /// Computes the figures of the CPU, as `kinetoscope cpu` prints them; returns the number of ops by name.
    ///
    /// # Errors
    /// Before `finish_details`.
    pub fn host(&self) -> Result<u32, JsError> {
        let details = self.details.as_ref().ok_or_else(out_of_order)?;
        let index = kinetoscope::HostIndex::of(&self.decoded()?.trace);
        Ok(kinetoscope::host(&index, details).cpu_ops.ops.len() as u32)
    }

    /// Reads the next bytes of the file again; false once no more are needed.
    ///
    /// # Errors
    /// Before `start_details`.
    pub fn push_details(&mut self, bytes: &[u8]) -> Result<bool, JsError> {
        let reader = self.reader.as_mut().ok_or_else(out_of_order)?;
        reader.push(bytes);
        Ok(!reader.is_done())
    }

    /// Ends the second pass.
    ///
    /// # Errors
    /// Before `start_details`.
    pub fn finish_details(&mut self) -> Result<(), JsError> {
        let reader = self.reader.take().ok_or_else(out_of_order)?;
        self.details = Some(reader.finish());
        Ok(())
    }

    /// Keeps the decoded trace as mapping trace of the next file.
    ///
    /// # Errors
    /// Before `finish_decode`.
    pub fn keep_as_mapping(&mut self) -> Result<(), JsError> {
        self.mapping = Some(&self.decoded()?.trace);
        self.decoder = Some(Decoder::new());
        Ok(())
    }

    /// Keeps the decoded trace as capture of the graphs that the next file replays.
    ///
    /// # Errors
    /// Before `finish_decode`.
    pub fn keep_as_capture(&mut self) -> Result<(), JsError> {
        self.captures.push(&self.decoded()?.trace);
        self.capture_details.extend(self.details.take());
        self.decoder = Some(Decoder::new());
        Ok(())
    }

    /// Runs triage and writes its artifacts without the repaired trace; returns their size in bytes.
    ///
    /// # Errors
    /// Before `finish_decode`.
    pub fn triage(&self) -> Result<f64, JsError> {
        let decoded = self.decoded()?;
        let capture_details: Vec<Option<&Details>> =
            self.capture_details.iter().map(Some).collect();
        let sources = Sources {
            captures: &self.captures,
            mapping: self.mapping,
            details: self.details.as_ref(),
            capture_details: &capture_details,
            ..Sources::default()
        };
        let found = kinetoscope::triage(&decoded.trace, &TriageOptions::default(), &sources);
        let files = triage_artifacts(&Triaged {
            decoded,
            report: &kinetoscope::analyze(&decoded.trace, &Options::default()),
            triage: &found,
            plan: None,
            sources: &[],
            facts: &UserFacts::default(),
            options: ArtifactOptions::default(),
            cutoff_pct: 1.0,
        });
        let files = files.map_err(|reason| JsError::new(&reason.to_string()))?;
        Ok(files.iter().map(|file| file.text.len()).sum::<usize>() as f64)
    }

    /// Begins the repaired `.json.gz`.
    ///
    /// # Errors
    /// Before `plan`.
    pub fn start_repair(&mut self) -> Result<(), JsError> {
        let plan = self.plan.ok_or_else(out_of_order)?;
        self.out.reserve(BLOCK + (BLOCK >> 2));
        self.repairer = Some(Repairer::new(self.decoded()?, plan, Output::Gzip));
        Ok(())
    }

    /// Reads the next bytes of the file again.
    ///
    /// # Errors
    /// Before `start_repair`.
    pub fn push_repair(&mut self, bytes: &[u8]) -> Result<(), JsError> {
        let repairer = self.repairer.as_mut().ok_or_else(out_of_order)?;
        repairer.push(bytes, &mut self.out);
        if self.out.len() >= BLOCK {
            self.n_bytes_out += self.out.len() as u64;
            self.out.clear();
        }
        Ok(())
    }

    /// The number of bytes of the repaired file.
    ///
    /// # Errors
    /// Before `start_repair`, and when the verification fails.
    pub fn finish_repair(&mut self) -> Result<f64, JsError> {
        let repairer = self.repairer.take().ok_or_else(out_of_order)?;
        if !repairer.finish(&mut self.out).holds {
            return Err(JsError::new("the repaired file does not hold what the original held"));
        }
        Ok((self.n_bytes_out + self.out.len() as u64) as f64)
    }

    fn decoded(&self) -> Result<&'static Decoded, JsError> {
        self.decoded.ok_or_else(out_of_order)
    }
}

fn out_of_order() -> JsError {
    JsError::new("the stages of a job come in order")
}
