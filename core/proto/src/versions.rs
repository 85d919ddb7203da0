//! Which messages this version may read, by what their writers say.

use crate::VersionDef;
use tenon_framework::Code;

/// The version of GraphDefs that is read and written here: `tf.version.GRAPH_DEF_VERSION` of
/// TensorFlow 2.21, whose ops these are.
pub const GRAPH_DEF_VERSION: i32 = 2474;

/// The oldest producer whose GraphDefs are read: `tf.version.GRAPH_DEF_VERSION_MIN_PRODUCER` of
/// TensorFlow 2.21.
pub const GRAPH_DEF_MIN_PRODUCER: i32 = 0;

/// The oldest consumer that can read the GraphDefs that are written here:
/// `tf.version.GRAPH_DEF_VERSION_MIN_CONSUMER` of TensorFlow 2.21.
pub const GRAPH_DEF_MIN_CONSUMER: i32 = 0;

/// The last producer that wrote a `Placeholder` of any shape with the shape of a scalar, as
/// TensorFlow's shape function of that op says.
pub const LAST_PRODUCER_OF_SCALARS_FOR_ANY_SHAPE: i32 = 21;

/// A message that this version may not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VersionError {
    /// It was written by what is too old.
    #[error(
        "the graph was written by a producer of version {found} (versions.producer), expected at least \
         {expected}: write it anew with a newer TensorFlow"
    )]
    Producer {
        /// Its producer.
        found: i32,
        /// The oldest that is read.
        expected: i32,
    },
    /// It is for newer readers.
    #[error(
        "the graph is for readers of version {found} and newer (versions.min_consumer), this one is of version \
         {consumer}: use a newer version of Tenon, or write the graph with an older TensorFlow"
    )]
    MinConsumer {
        /// The oldest reader that it allows.
        found: i32,
        /// This reader.
        consumer: i32,
    },
    /// It is for all readers but those of this version.
    #[error(
        "the graph names readers of version {consumer}, which this one is, as unfit to read it \
         (versions.bad_consumers): use another version of Tenon"
    )]
    BadConsumer {
        /// This reader.
        consumer: i32,
    },
}

impl VersionError {
    /// The canonical code.
    #[must_use]
    pub const fn code(&self) -> Code {
        Code::INVALID_ARGUMENT
    }
}

/// Checks that a graph of these versions may be read here, as TensorFlow's `CheckVersions` does. A
/// producer newer than this reader may be read, unless its `min_consumer` excludes the reader.
///
/// # Errors
/// The producer is too old, or excludes this reader.
pub fn check_graph_versions(versions: &VersionDef) -> Result<(), VersionError> {
    let consumer = GRAPH_DEF_VERSION;
    if versions.producer < GRAPH_DEF_MIN_PRODUCER {
        let (found, expected) = (versions.producer, GRAPH_DEF_MIN_PRODUCER);
        return Err(VersionError::Producer { found, expected });
    }
    if versions.min_consumer > consumer {
        return Err(VersionError::MinConsumer { found: versions.min_consumer, consumer });
    }
    if versions.bad_consumers.contains(&consumer) {
        return Err(VersionError::BadConsumer { consumer });
    }
    Ok(())
}

/// The versions of a graph that is made here.
#[must_use]
pub fn own_versions() -> VersionDef {
    VersionDef {
        producer: GRAPH_DEF_VERSION,
        min_consumer: GRAPH_DEF_MIN_CONSUMER,
        bad_consumers: Vec::new(),
    }
}

/// The versions of a graph of these versions that takes in a message of others: it is as old as its
/// oldest part, and who reads it must be able to read all parts.
pub fn merged_versions(own: Option<&VersionDef>, found: &VersionDef) -> VersionDef {
    let own = own.cloned().unwrap_or_default();
    let mut bad_consumers = own.bad_consumers.clone();
    bad_consumers.extend(found.bad_consumers.iter().filter(|bad| !own.bad_consumers.contains(bad)));
    VersionDef {
        producer: own.producer.min(found.producer),
        min_consumer: own.min_consumer.max(found.min_consumer),
        bad_consumers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(producer: i32, min_consumer: i32, bad: &[i32]) -> Result<(), VersionError> {
        check_graph_versions(&VersionDef { producer, min_consumer, bad_consumers: bad.to_vec() })
    }

    #[test]
    fn graphs_for_newer_readers_are_refused() {
        assert_eq!(check_graph_versions(&own_versions()), Ok(()));
        assert_eq!(check(0, 0, &[]), Ok(()));
        assert_eq!(check(99999, GRAPH_DEF_VERSION, &[5, GRAPH_DEF_VERSION + 1]), Ok(()));
        let newer = check(99999, GRAPH_DEF_VERSION + 1, &[]).unwrap_err();
        assert_eq!(
            newer.to_string(),
            "the graph is for readers of version 2475 and newer (versions.min_consumer), this one is of version 2474: \
             use a newer version of Tenon, or write the graph with an older TensorFlow"
        );
        let bad = check(30, 0, &[5, GRAPH_DEF_VERSION]).unwrap_err();
        assert!(bad.to_string().contains("unfit to read it (versions.bad_consumers)"), "{bad}");
        let old = check(-1, 0, &[]).unwrap_err();
        assert!(old.to_string().contains("of version -1 (versions.producer), expected at least 0"));
        assert_eq!(old.code(), Code::INVALID_ARGUMENT);
    }
}
