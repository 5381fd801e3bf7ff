//! GPU time traced back to ops and Python lines: its tables by stage, overlap and fusion.

pub mod before_window;
pub mod fuse;
pub mod kernel_panel;
pub mod kernels;
pub mod overlap;
pub mod overlap_lanes;
pub mod protocol;
pub mod queries;
pub mod stages;
pub mod view;
pub mod window;
