//! Sessions of socket calls at random, done step by step in two worlds at once: one of the kernel, one under sovia.
//!
//! A session is a list of [steps](step::Step), each a call that one of several processes makes. Both [worlds](world) make it, and
//! [compare](run) what came of it. What differs is [cut down](shrink) to the steps that it takes, and printed so that it can be run again.
#![forbid(unsafe_code)]

pub mod actor;
pub mod choice;
mod compare;
pub mod lab;
pub mod model;
pub mod record;
pub mod run;
pub mod shrink;
pub mod step;
mod tolerated;
pub mod world;
