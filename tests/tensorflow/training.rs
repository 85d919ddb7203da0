//! Training graphs of core/train against TensorFlow's (`goldens/training/training.json`): optimisers, schedules, clipping,
//! averages, parts of variables; and towers against one device.

mod averages;
mod clips;
mod model;
mod optimizers;
mod parallel;
mod partitions;
mod schedules;
