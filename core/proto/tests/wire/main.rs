//! The messages against `testdata/fields.txt`, against bytes that TensorFlow wrote, and against
//! hostile bytes.

mod hostile;
mod kinds;
mod limits;
mod order;
mod round_trip;
mod schema;
mod tensorflow;
mod writer;
