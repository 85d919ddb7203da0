//! Tensors in requests and answers whose elements are no plain values: handles of resources, and variants.
//!
//! Both have TensorFlow's encoding: `tensor_content` has the size of each element's message, and then the messages. A feed
//! may have them in `resource_handle_val` and `variant_val` as well.
//!
//! A handle is found again by its device, container, name and type. One of a resource that has no name gets one here, and
//! the session keeps the resource, for the latest of such handles.

use super::session::MasterSession;
use crate::refusal::Refusal;
use prost::{Message, bytes::Bytes};
use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash, Hasher},
};
use tenon_framework::{
    Code, DType, Shape, Tensor,
    device::base::DeviceBase,
    resource::{ResourcePlace, ResourceRef},
    sync::{Mutex, rank},
};
use tenon_host::{
    resources::{VARIABLE_TYPE, Variable, handles_in, tensor_of_handles},
    variants::{EncodedVariant, decode, encode},
};
use tenon_proto::{
    DtypeAndShape, ResourceHandleProto, TensorProto, VariantTensorDataProto,
    convert::{
        dtype_from_proto, dtype_to_proto, full_shape_from_proto, shape_to_proto, tensor_from_proto,
        tensor_to_proto,
    },
};
use tenon_runtime::Worker;

/// Handles of resources without names that a session remembers.
const REMEMBERED: usize = 1000;
/// How deep variants may be in each other.
const DEEPEST: usize = 100;
/// The container of handles of resources without names; it is TensorFlow's.
const ANONYMOUS: &str = "Anonymous";

/// Where a session finds resources.
pub(super) struct References {
    /// Full names of the devices.
    devices: Vec<String>,
    /// Resources without names, under those that they have for the client.
    anonymous: Mutex<VecDeque<(String, ResourceRef)>>,
}

impl References {
    pub fn new(worker: &Worker) -> References {
        let devices = worker.runtime().devices().devices();
        let devices = devices.iter().map(|device| device.name().to_string()).collect();
        References { devices, anonymous: Mutex::ranked(rank::LEAF, VecDeque::new()) }
    }

    /// The name of a resource without one.
    fn name(&self, resource: &ResourceRef) -> String {
        let mut anonymous = self.anonymous.lock();
        if let Some((name, _)) = anonymous.iter().find(|(_, found)| found.is(resource)) {
            return name.clone();
        }
        let name = format!("Resource-{}", crate::handles::new_handle());
        anonymous.push_back((name.clone(), resource.clone()));
        let forgotten = if anonymous.len() > REMEMBERED { anonymous.pop_front() } else { None };
        drop(anonymous);
        // It may be the last reference, and its destructor takes as long as it likes.
        drop(forgotten);
        name
    }

    fn anonymous(&self, name: &str) -> Option<ResourceRef> {
        let anonymous = self.anonymous.lock();
        anonymous.iter().find(|(found, _)| found == name).map(|(_, resource)| resource.clone())
    }
}

impl MasterSession {
    /// The message of a tensor.
    pub fn write_tensor(&self, tensor: &Tensor) -> Result<TensorProto, Refusal> {
        self.write_at(tensor, 0)
    }

    /// The tensor of a message.
    pub fn read_tensor(&self, proto: &TensorProto) -> Result<Tensor, Refusal> {
        self.read_at(proto, 0)
    }

    fn write_at(&self, tensor: &Tensor, depth: usize) -> Result<TensorProto, Refusal> {
        let messages: Vec<Vec<u8>> = match tensor.dtype() {
            DType::RESOURCE => {
                let handles = handles_in(tensor)?;
                handles
                    .iter()
                    .map(|handle| self.handle_of(handle.as_ref()).encode_to_vec())
                    .collect()
            }
            DType::VARIANT => {
                check_depth(depth)?;
                let variants = encode(tensor)?;
                let written = variants.into_iter().map(|one| self.write_variant(one, depth));
                written.collect::<Result<_, _>>()?
            }
            _ => return Ok(tensor_to_proto(tensor)?),
        };
        Ok(TensorProto {
            dtype: dtype_to_proto(tensor.dtype()),
            tensor_shape: Some(shape_to_proto(&(*tensor.shape()).into())),
            tensor_content: joined(&messages),
            ..TensorProto::default()
        })
    }

    fn write_variant(&self, variant: EncodedVariant, depth: usize) -> Result<Vec<u8>, Refusal> {
        let tensors = variant.tensors.iter().map(|tensor| self.write_at(tensor, depth + 1));
        let message = VariantTensorDataProto {
            type_name: variant.type_name,
            metadata: variant.metadata,
            tensors: tensors.collect::<Result<_, _>>()?,
        };
        Ok(message.encode_to_vec())
    }

    fn handle_of(&self, resource: Option<&ResourceRef>) -> ResourceHandleProto {
        let Some(resource) = resource else { return ResourceHandleProto::default() };
        let kind = resource.get().type_name();
        let mut hash = DefaultHasher::new();
        kind.hash(&mut hash);
        let (container, name, device) = match resource.place() {
            Some(place) => {
                let device = self.device_of(resource, place).unwrap_or_default();
                (place.container.clone(), place.name.clone(), device)
            }
            None => (ANONYMOUS.to_owned(), self.references.name(resource), self.first_device()),
        };
        ResourceHandleProto {
            device,
            container,
            name,
            hash_code: hash.finish(),
            maybe_type_name: kind.to_owned(),
            dtypes_and_shapes: Variable::of(resource).map(contents).into_iter().collect(),
        }
    }

    fn first_device(&self) -> String {
        self.references.devices.first().cloned().unwrap_or_default()
    }

    /// The device on which a resource is at its place.
    fn device_of(&self, resource: &ResourceRef, place: &ResourcePlace) -> Option<String> {
        let is_there = |device: &&String| {
            let manager = self.session.resources().of(device);
            let found = manager.find(&place.container, &place.name, resource.get().type_name());
            found.is_some_and(|found| found.is(resource))
        };
        self.references.devices.iter().find(is_there).cloned()
    }

    fn read_at(&self, proto: &TensorProto, depth: usize) -> Result<Tensor, Refusal> {
        let dtype = dtype_from_proto(proto.dtype)?;
        if dtype != DType::RESOURCE && dtype != DType::VARIANT {
            return Ok(tensor_from_proto(proto)?);
        }
        let shape = full_shape_from_proto(proto.tensor_shape.as_ref())?;
        if dtype == DType::RESOURCE {
            let handles = messages(proto, &proto.resource_handle_val, shape)?;
            let found = handles.iter().map(|handle| self.resource(handle));
            return Ok(tensor_of_handles(shape, found.collect::<Result<_, _>>()?)?);
        }
        check_depth(depth)?;
        let variants = messages(proto, &proto.variant_val, shape)?;
        let read = variants.into_iter().map(|variant| {
            let tensors = variant.tensors.iter().map(|tensor| self.read_at(tensor, depth + 1));
            let tensors = tensors.collect::<Result<_, Refusal>>()?;
            let (type_name, metadata) = (variant.type_name, variant.metadata);
            Ok(EncodedVariant { type_name, metadata, tensors })
        });
        let read = read.collect::<Result<Vec<_>, Refusal>>()?;
        Ok(decode(&self.registry(), shape, &read)?)
    }

    /// The resource of a handle; `None` for a handle of nothing.
    fn resource(&self, handle: &ResourceHandleProto) -> Result<Option<ResourceRef>, Refusal> {
        let ResourceHandleProto { device, container, name, maybe_type_name, .. } = handle;
        if name.is_empty() {
            return Ok(None);
        }
        if container == ANONYMOUS
            && let Some(resource) = self.references.anonymous(name)
        {
            return Ok(Some(resource));
        }
        let is_there = device.is_empty() || self.references.devices.contains(device);
        // Names that begin so are those of the host and of its plugins.
        let is_hidden = [container, name].iter().any(|text| text.starts_with('_'));
        let absent = || {
            let what = format!("'{name}' in container '{container}' of device '{device}'");
            Refusal::new(
                Code::NOT_FOUND,
                format!(
                    "there is no resource {what} of type '{maybe_type_name}': expected a handle that a step of this \
                     session gave, of a resource that is still there"
                ),
            )
        };
        if !is_there || is_hidden {
            return Err(absent());
        }
        let device = if device.is_empty() { self.first_device() } else { device.clone() };
        let manager = self.session.resources().of(&device);
        if let Some(found) = manager.find(container, name, maybe_type_name) {
            return Ok(Some(found));
        }
        // A variable that was removed comes back when it is assigned.
        match handle.dtypes_and_shapes.first() {
            Some(contents) if maybe_type_name == VARIABLE_TYPE => {
                Ok(Some(manager.variable(container, name, dtype_from_proto(contents.dtype)?)?))
            }
            _ => Err(absent()),
        }
    }
}

/// Type and shape of a variable's value.
fn contents(variable: &Variable) -> DtypeAndShape {
    let shape = variable.value().map(|value| shape_to_proto(&(*value.shape()).into()));
    DtypeAndShape { dtype: dtype_to_proto(variable.dtype()), shape }
}

fn check_depth(depth: usize) -> Result<(), Refusal> {
    if depth < DEEPEST {
        return Ok(());
    }
    Err(Refusal::invalid(format!(
        "variants are in each other to a depth of more than {DEEPEST}: feed and fetch what they hold"
    )))
}

/// Messages in `tensor_content`: the size of each as a varint, then all.
fn joined(messages: &[Vec<u8>]) -> Bytes {
    let mut bytes = Vec::new();
    for message in messages {
        prost::encoding::encode_varint(message.len() as u64, &mut bytes);
    }
    messages.iter().for_each(|message| bytes.extend_from_slice(message));
    bytes.into()
}

/// The messages of the elements of a tensor, of which `listed` are in a field of their own.
fn messages<M: Message + Default + Clone>(
    proto: &TensorProto,
    listed: &[M],
    shape: Shape,
) -> Result<Vec<M>, Refusal> {
    let expected = shape.elements();
    if proto.tensor_content.is_empty() {
        return match listed.len() {
            found if found == expected => Ok(listed.to_vec()),
            found => Err(Refusal::invalid(format!(
                "expected {expected} elements for shape {shape}, found {found}"
            ))),
        };
    }
    let wrong = |what: String| Refusal::invalid(format!("tensor_content: {what}"));
    let mut rest = &proto.tensor_content[..];
    if expected > rest.len() {
        let found = rest.len();
        return Err(wrong(format!("expected {expected} elements, found {found} bytes")));
    }
    let mut sizes = Vec::with_capacity(expected);
    for _ in 0..expected {
        let size = prost::encoding::decode_varint(&mut rest);
        let size = size.ok().and_then(|size| usize::try_from(size).ok());
        sizes.push(size.ok_or_else(|| wrong("expected the size of an element".to_owned()))?);
    }
    let mut found = Vec::with_capacity(expected);
    for size in sizes {
        let Some((message, after)) = rest.split_at_checked(size) else {
            return Err(wrong(format!(
                "expected {size} bytes of an element, found {}",
                rest.len()
            )));
        };
        let message = M::decode(message);
        found.push(message.map_err(|error| wrong(format!("an element is damaged: {error}")))?);
        rest = after;
    }
    match rest.len() {
        0 => Ok(found),
        more => Err(wrong(format!("expected the end after the elements, found {more} bytes"))),
    }
}
