//! One folder per feature: `protocol` crosses to the worker, `state` is its part of the reducer, `queries` derive what is shown,
//! `view` and the files beside it draw. A feature has those that it needs; circles between features are refused
//! (`cargo xtask layers`).

pub mod aside;
pub mod breakdown;
pub mod commands;
pub mod compare;
pub mod data_table;
pub mod downloads;
pub mod files;
pub mod host;
pub mod overview;
pub mod ranks;
pub mod repair;
pub mod several;
pub mod snapshot;
pub mod timeline;
pub mod triage;
