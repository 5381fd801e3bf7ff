//! From the file as it was to the file as it should be.

use decode::{Decoded, ProblemKind, Source};
use ingest::Unpacker;
use repair::{Applier, RepairPlan};
use serde::{Deserialize, Serialize};

use crate::digest::Digester;
use crate::gzip::GzipWriter;
use crate::proof::Proof;

/// The form of a repaired file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output {
    /// `.json.gz`: what Perfetto opens fastest and hosts store smallest.
    #[default]
    Gzip,
    /// `.json`.
    Json,
}

/// Streams a file through its repair.
///
/// Sans-I/O: [`Repairer::push`] the original file (compressed or not, as it was decoded) in any pieces and
/// take the output; then [`Repairer::finish`] for the last bytes and the [`Proof`]. The output does not
/// depend on the pieces. A file that needs no repair and keeps its form comes out byte for byte.
pub struct Repairer<'a> {
    plan: &'a RepairPlan,
    unpacker: Unpacker,
    applier: Applier<'a>,
    gzip: Option<GzipWriter>,
    passes: bool,
    before: Digester,
    after: Digester,
    json: Vec<u8>,
    n_json_bytes: u64,
}

impl<'a> Repairer<'a> {
    /// A repairer for the file that `decoded` was read from.
    #[must_use]
    pub fn new(decoded: &'a Decoded, plan: &'a RepairPlan, output: Output) -> Self {
        let Source { gzip, .. } = decoded.source;
        let origin_ns = decoded.trace.origin_ns;
        Self {
            plan,
            unpacker: Unpacker::again(gzip),
            applier: Applier::new(&decoded.trace, plan),
            gzip: (output == Output::Gzip).then(GzipWriter::new),
            passes: plan.is_identity()
                && gzip == (output == Output::Gzip)
                && !is_damaged_gzip(decoded),
            before: Digester::new(origin_ns),
            after: Digester::new(origin_ns - plan.base.map_or(0, |base| base.ns)),
            json: Vec::new(),
            n_json_bytes: 0,
        }
    }

    /// Takes the next bytes of the original file and appends output.
    pub fn push(&mut self, file_bytes: &[u8], out: &mut Vec<u8>) {
        let Self { unpacker, applier, gzip, passes, before, after, json, n_json_bytes, .. } = self;
        let mut take = |bytes: &[u8]| {
            before.push(bytes);
            json.clear();
            applier.push(bytes, json);
            after.push(json);
            *n_json_bytes += json.len() as u64;
            match gzip {
                _ if *passes => {}
                Some(gzip) => gzip.push(json, out),
                None => out.extend_from_slice(json),
            }
        };
        unpacker.push(file_bytes, &mut take);
        if *passes {
            out.extend_from_slice(file_bytes);
        }
    }

    /// Appends the last output and says what was conserved.
    pub fn finish(self, out: &mut Vec<u8>) -> Proof {
        let Self { plan, applier, mut gzip, passes, before, mut after, .. } = self;
        let mut json = Vec::new();
        let n_aside_unkept = applier.finish(&mut json);
        after.push(&json);
        match gzip.take() {
            _ if passes => {}
            Some(mut gzip) => {
                gzip.push(&json, out);
                gzip.finish(out);
            }
            None => out.extend_from_slice(&json),
        }
        Proof::new(plan, &before.finish(), &after.finish(), n_aside_unkept)
    }
}

/// Whether the compressed frame itself must be written anew.
pub(crate) fn is_damaged_gzip(decoded: &Decoded) -> bool {
    let damage = [
        ProblemKind::GzipTruncated,
        ProblemKind::GzipCrc,
        ProblemKind::GzipLength,
        ProblemKind::GzipTrailing,
        ProblemKind::GzipCorrupt,
    ];
    decoded.problems.iter().any(|problem| damage.contains(&problem.kind))
}
