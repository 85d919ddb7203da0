//! What the members of an operation agree on.
//!
//! Members of other tasks do not ask the leader of their group whether they agree: each shows it with the tensors that it
//! requests, and the sender compares. Every member of an operation that moves any elements depends on the tensors of all, so
//! that one which differs is found. A [broadcast](CollectiveKind::BROADCAST) is not such an operation: its source needs nobody.

use super::{Group, GroupDevice, InstanceKey, Join};
use tenon_abi::CollectiveKind;
use tenon_framework::{Code, KernelError};

/// What a member takes to be the same for all, as numbers that are equal in every process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed {
    /// The devices of the group, with their incarnations.
    pub group: u64,
    /// The kind of operation, and the type and dimensions of the values.
    pub values: u64,
}

/// FNV-1a.
struct Hash(u64);

impl Hash {
    fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(self, bytes: &[u8]) -> Hash {
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Hash(bytes.iter().fold(self.0, mix))
    }

    fn number(self, number: u64) -> Hash {
        self.bytes(&number.to_le_bytes())
    }
}

/// The number of the devices of a group.
pub(super) fn digest(devices: &[GroupDevice]) -> u64 {
    let device = |hash: Hash, device: &GroupDevice| {
        let hash = hash.number(device.name.len() as u64).bytes(device.name.as_bytes());
        hash.number(device.incarnation)
    };
    devices.iter().fold(Hash::new(), device).0
}

impl Agreed {
    /// What a member of a group agrees to.
    pub(super) fn of(group: &Group, join: &Join) -> Agreed {
        let values = Hash::new().number(u64::from(join.kind.0)).number(u64::from(join.dtype.0));
        let dim = |hash: Hash, dim: &i64| hash.number(dim.cast_unsigned());
        Agreed { group: group.digest(), values: join.dims.iter().fold(values, dim).0 }
    }

    /// The error of two members that do not agree, of which one may be here.
    pub(super) fn difference(
        self,
        other: Agreed,
        key: &InstanceKey,
        here: Option<&Join>,
    ) -> Option<KernelError> {
        let InstanceKey { group, instance, .. } = key;
        if self.group != other.group {
            let message = format!(
                "group {group} has other members for another member of it: one of them was started anew, or the group was \
                 formed anew; run the step again"
            );
            return Some(KernelError::new(Code::ABORTED, message));
        }
        if self.values == other.values {
            return None;
        }
        let here = here.map(|join| {
            let Join { dtype, dims, device, .. } = join;
            format!(", of which {} has {dtype} of {dims:?}", device.name)
        });
        Some(KernelError::invalid_argument(format!(
            "shape mismatch in the collective instance {instance} of group {group}: its members{} differ; give all members \
             the same operation, and inputs of one type and shape",
            here.unwrap_or_default()
        )))
    }
}

/// Whether members show by their exchange that they agree: each of them needs tensors of all others.
pub(super) fn is_shown(join: &Join) -> bool {
    join.kind != CollectiveKind::BROADCAST && !join.dims.contains(&0)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use tenon_framework::DType;

    fn group(incarnation: u64) -> Group {
        let device = |task: u32| GroupDevice {
            name: format!("/job:w/replica:0/task:{task}/device:CPU:0"),
            device_type: "CPU".to_owned(),
            incarnation,
        };
        Group::new(1, vec![device(0), device(1)])
    }

    fn join(kind: CollectiveKind, dtype: DType, dims: &[i64]) -> Join {
        Join {
            key: InstanceKey { step: 3, group: 1, instance: 7, iteration: (0, 0) },
            size: 2,
            kind,
            device: group(5).devices[0].clone(),
            dtype,
            dims: dims.to_vec(),
            is_source: false,
            timeout: None,
        }
    }

    #[test]
    fn members_agree_on_the_group_and_on_the_values() {
        let own = join(CollectiveKind::REDUCE, DType::FLOAT, &[2, 3]);
        let agreed = Agreed::of(&group(5), &own);
        assert!(agreed.difference(Agreed::of(&group(5), &own), &own.key, None).is_none());
        for other in [
            join(CollectiveKind::GATHER, DType::FLOAT, &[2, 3]),
            join(CollectiveKind::REDUCE, DType::INT32, &[2, 3]),
            join(CollectiveKind::REDUCE, DType::FLOAT, &[3, 2]),
            join(CollectiveKind::REDUCE, DType::FLOAT, &[6]),
        ] {
            let other = Agreed::of(&group(5), &other);
            let error = agreed.difference(other, &own.key, Some(&own)).expect("they differ");
            assert_eq!(error.code, Code::INVALID_ARGUMENT);
            let said = ["shape mismatch in the collective instance 7", "float of [2, 3]"];
            assert!(said.iter().all(|it| error.message.contains(it)), "{error}");
        }
        let anew = Agreed::of(&group(6), &own);
        let error = agreed.difference(anew, &own.key, None).expect("the group differs");
        assert_eq!(error.code, Code::ABORTED, "{error}");
    }

    #[test]
    fn operations_without_elements_and_broadcasts_show_nothing() {
        assert!(is_shown(&join(CollectiveKind::REDUCE, DType::FLOAT, &[])));
        assert!(!is_shown(&join(CollectiveKind::REDUCE, DType::FLOAT, &[2, 0])));
        assert!(!is_shown(&join(CollectiveKind::BROADCAST, DType::FLOAT, &[2])));
    }
}
