//! Checkpoints as files: what they have, and single tensors of them.

use crate::{
    client::{
        handle::Handle, info::ValueInfo, runtime::texts, status::Status, tensor::Tensor,
        text::List, versioned::Filled,
    },
    fail::Failure,
    raw::{Array, Text},
};
use std::{
    ffi::c_int,
    path::Path,
    slice,
    sync::{Arc, LazyLock},
};
use tenon_bundle::{Bundle, BundleWriter, Content, Entry, Files};
use tenon_files::Access;
use tenon_framework::{
    Code, DType, PartialShape, Shape, Tensor as Value,
    sync::{Mutex, rank},
    tensor::host_memory,
};

/// A checkpoint that is open to read.
pub struct Checkpoint(Mutex<Bundle<'static>>);

kept! { Checkpoint => "a checkpoint" }

/// The files of checkpoints, which a program in C reads and writes as itself.
fn files() -> Files<'static> {
    static ACCESS: LazyLock<Access> = LazyLock::new(Access::to_any);
    Files::new(&ACCESS, "the prefix of the checkpoint")
}

fn entry(bundle: &mut Bundle<'static>, name: &str) -> Result<Entry, Failure> {
    let found = bundle.find(name.as_bytes())?;
    found.ok_or_else(|| {
        let prefix = bundle.name();
        Failure::new(
            Code::NOT_FOUND,
            format!("checkpoint {prefix} has no tensor '{name}': tn_checkpoint_names lists them"),
        )
    })
}

fn read(bundle: &mut Bundle<'static>, name: &str) -> Result<Value, Failure> {
    let entry = entry(bundle, name)?;
    match entry.dtype {
        DType::STRING => {
            let found = bundle.read_strings(name.as_bytes(), &entry, None)?;
            let found: Vec<&[u8]> = found.iter().collect();
            Ok(Value::from_strings(&entry.dims, &found)?)
        }
        DType::VARIANT | DType::RESOURCE => Err(Failure::new(
            Code::UNIMPLEMENTED,
            format!("tensor '{name}' has elements of {}, which cannot be read here", entry.dtype),
        )),
        dtype => {
            // The files have as many bytes as the shape takes, so that no more memory is taken than that.
            bundle.check(name.as_bytes(), &entry, None)?;
            let value = Value::allocate(host_memory(), dtype, Shape::new(&entry.dims)?)?;
            let data = value.buffer().data().cast::<u8>();
            // SAFETY: fresh memory of as many bytes, which nothing else refers to; zeros are values of every plain type.
            let bytes = unsafe {
                data.write_bytes(0, value.byte_len());
                slice::from_raw_parts_mut(data, value.byte_len())
            };
            bundle.read(name.as_bytes(), &entry, None, bytes)?;
            value.validate()?;
            Ok(value)
        }
    }
}

fn write(prefix: &str, names: &[&str], tensors: &[Arc<Tensor>]) -> Result<(), Failure> {
    let mut writer = BundleWriter::create(files(), Path::new(prefix))?;
    for (name, tensor) in names.iter().zip(tensors) {
        let value = &tensor.value;
        let (dtype, dims) = (value.dtype().base(), value.shape().dims());
        match dtype {
            DType::STRING => {
                let texts = value.as_strings()?;
                writer.add(name.as_bytes(), dtype, dims, Content::Strings(&texts))?;
            }
            _ => writer.add(name.as_bytes(), dtype, dims, Content::Bytes(value.as_bytes()?))?,
        }
    }
    Ok(writer.finish()?)
}

api! {
    /// Opens the checkpoint with this prefix, of the form of TensorFlow's (PREFIX.index). The caller deletes it.
    fn tn_checkpoint_open(prefix: Text<'_>, status: Option<&mut Status>) -> Handle<Checkpoint> [status] {
        let prefix = prefix.required("the prefix of the checkpoint")?;
        let bundle = Bundle::open(files(), Path::new(prefix))?;
        Ok(Handle::new(Checkpoint(Mutex::ranked(rank::VARIABLE, bundle))))
    }

    /// Closes and deletes a checkpoint; its files stay.
    fn tn_checkpoint_delete(checkpoint: Handle<Checkpoint>) -> c_int { checkpoint.delete() }

    /// The names of its tensors, sorted. The caller deletes the list.
    fn tn_checkpoint_names(
        checkpoint: Handle<Checkpoint>,
        status: Option<&mut Status>,
    ) -> Handle<List> [status] {
        let entries = checkpoint.get()?.0.lock().entries()?;
        Ok(List::of(entries.iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned())))
    }

    /// Writes the element type and the shape of a tensor.
    fn tn_checkpoint_info(
        checkpoint: Handle<Checkpoint>,
        name: Text<'_>,
        info: Filled<'_, ValueInfo>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let (checkpoint, name) = (checkpoint.get()?, name.required("the name of the tensor")?);
        let entry = entry(&mut checkpoint.0.lock(), name)?;
        info.set(&ValueInfo::of(Some(entry.dtype), &PartialShape::new(&entry.dims)?))?;
        Ok(true)
    }

    /// Reads a tensor. TN_DATA_LOSS if its checksum differs. The caller deletes the tensor.
    fn tn_checkpoint_read(
        checkpoint: Handle<Checkpoint>,
        name: Text<'_>,
        status: Option<&mut Status>,
    ) -> Handle<Tensor> [status] {
        let (checkpoint, name) = (checkpoint.get()?, name.required("the name of the tensor")?);
        let value = read(&mut checkpoint.0.lock(), name)?;
        Tensor::of(value)
    }

    /// Writes tensors as a checkpoint with this prefix, in the place of one that is there. It appears as a whole or not at all.
    fn tn_checkpoint_write(
        prefix: Text<'_>,
        names: Array<'_, Text<'_>>,
        tensors: Array<'_, Handle<Tensor>>,
        count: usize,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let prefix = prefix.required("the prefix of the checkpoint")?;
        let names = texts(names, count, "the name of a tensor")?;
        write(prefix, &names, &tensors.objects(count, "the tensors")?)?;
        Ok(true)
    }

    /// The prefix of the newest complete checkpoint of a folder, by its file "checkpoint", in a list of one text, or an empty list
    /// where there is none. The caller deletes the list.
    fn tn_checkpoint_latest(folder: Text<'_>, status: Option<&mut Status>) -> Handle<List> [status] {
        let folder = folder.required("the folder of the checkpoints")?;
        let found = tenon_training::latest_checkpoint(folder)?;
        Ok(List::of(found.iter().map(|path| path.display().to_string())))
    }
}
