//! The nodes that save and restore, named as those of TensorFlow's `Saver`.

use crate::{TrainError, Variable, nodes::constant};
use std::collections::{BTreeMap, HashSet};
use tenon_framework::{DType, PartialShape, Tensor, device::DeviceName};
use tenon_graph::{GraphBuilder, NodeId, Output};
use tenon_proto::SaveSliceInfoDef;

/// The names that a `SaverDef` has.
pub(super) struct Names {
    pub filename: String,
    pub save: String,
    pub restore: String,
}

/// The names of the nodes that save from copies of the variables.
#[derive(Debug, Clone)]
pub(super) struct CopyNames {
    /// The node that copies all variables.
    pub take: String,
    /// The tensor that is fed with the prefix.
    pub filename: String,
    /// The tensor that saves the copies.
    pub save: String,
    /// The node that forgets the copies.
    pub release: String,
}

/// A variable under its name in checkpoints.
struct Entry<'v> {
    name: &'v str,
    slice: String,
    variable: &'v Variable,
}

/// Adds the nodes below `scope`, or below `scope_1` and so on if the graph has such nodes already.
pub(super) fn build(
    b: &mut GraphBuilder<'_>,
    named: &[(String, Variable)],
    scope: &str,
    sharded: bool,
) -> Result<Names, TrainError> {
    let entries = entries(named)?;
    let mut nodes = Nodes { scope: unused_scope(b, scope), b };
    let filename = nodes.filename()?;
    let (save, restore) = if sharded {
        let shards = by_device(entries);
        (nodes.save_shards(filename, &shards)?, nodes.restore_shards(filename, &shards)?)
    } else {
        let restore_name = nodes.name("restore_all");
        let save = nodes.save(filename, &entries, "")?;
        (save, nodes.restore(filename, &entries, "", &restore_name)?)
    };
    let graph = nodes.b.graph();
    Ok(Names {
        filename: graph.output_name(filename),
        save: graph.output_name(save),
        restore: graph.node(restore).name.clone(),
    })
}

/// Adds nodes that copy all variables to others, save those, and forget them. A copy has the buffer of its variable until the
/// variable is updated. The nodes are below `SCOPE_background`.
pub(super) fn build_copies(
    b: &mut GraphBuilder<'_>,
    named: &[(String, Variable)],
    scope: &str,
    sharded: bool,
) -> Result<CopyNames, TrainError> {
    let scope = unused_scope(b, &format!("{scope}_background"));
    let mut nodes = Nodes { scope, b };
    let filename = nodes.filename()?;
    let (mut copies, mut taken, mut released) = (Vec::new(), Vec::new(), Vec::new());
    for (name, variable) in named {
        let copy = nodes.copy(variable)?;
        let assign = nodes.b.op("AssignVariableOp").device(&variable.device);
        taken.push(assign.input(copy.handle).input(variable.value).build()?);
        let destroy = nodes.b.op("DestroyResourceOp").device(&variable.device);
        released.push(destroy.input(copy.handle).attr("ignore_lookup_error", true).build()?);
        copies.push((name.clone(), copy));
    }
    let entries = entries(&copies)?;
    let save = match sharded {
        true => nodes.save_shards(filename, &by_device(entries))?,
        false => nodes.save(filename, &entries, "")?,
    };
    let (take, release) = (nodes.name("take"), nodes.name("release"));
    nodes.group(&take, &taken)?;
    nodes.group(&release, &released)?;
    let graph = nodes.b.graph();
    Ok(CopyNames {
        take,
        filename: graph.output_name(filename),
        save: graph.output_name(save),
        release,
    })
}

fn entries(named: &[(String, Variable)]) -> Result<Vec<Entry<'_>>, TrainError> {
    if named.is_empty() {
        let found = "none: a checkpoint without tensors cannot be written";
        return Err(TrainError::argument("a saver", "at least one variable", found));
    }
    let mut seen = HashSet::new();
    // The names of nodes follow from this order.
    let mut sorted: Vec<_> = named.iter().collect();
    sorted.sort_by_key(|(name, _)| name);
    sorted
        .into_iter()
        .map(|(name, variable)| {
            let slice = variable.slice.as_ref().map(spec).transpose()?.unwrap_or_default();
            if !seen.insert((name.as_str(), slice.clone())) {
                let found = format!("'{name}' twice, the second time for '{}'", variable.name);
                return Err(TrainError::argument("a saver", "each name once", found));
            }
            Ok(Entry { name, slice, variable })
        })
        .collect()
}

/// The text of `shape_and_slices` for a part, such as `4 3 0,2:0,3`.
fn spec(slice: &SaveSliceInfoDef) -> Result<String, TrainError> {
    let rank = slice.full_shape.len();
    if [&slice.var_offset, &slice.var_shape].iter().any(|part| part.len() != rank) {
        let what = format!("a part of '{}'", slice.full_name);
        let expected = format!("{rank} offsets and {rank} sizes, as the whole has dimensions");
        let found = format!("{:?} and {:?}", slice.var_offset, slice.var_shape);
        return Err(TrainError::argument(what, expected, found));
    }
    let dims: Vec<String> = slice.full_shape.iter().map(i64::to_string).collect();
    let parts = slice.var_offset.iter().zip(&slice.var_shape);
    let parts: Vec<String> = parts.map(|(offset, size)| format!("{offset},{size}")).collect();
    Ok(format!("{} {}", dims.join(" "), parts.join(":")))
}

/// The entries of each device, in the order of the devices' names.
fn by_device(entries: Vec<Entry<'_>>) -> Vec<(String, Vec<Entry<'_>>)> {
    let mut shards: BTreeMap<String, Vec<Entry<'_>>> = BTreeMap::new();
    for entry in entries {
        shards.entry(entry.variable.device.clone()).or_default().push(entry);
    }
    shards.into_iter().collect()
}

/// The CPU of the task that a device belongs to: files are read and written there.
fn cpu_of(device: &str) -> Result<String, TrainError> {
    if device.is_empty() {
        return Ok(String::new());
    }
    let parsed = DeviceName::parse(device).map_err(|error| {
        TrainError::argument("the device of a variable", "a device name", error.to_string())
    })?;
    Ok(parsed.with_device("CPU", 0).to_string())
}

fn unused_scope(b: &GraphBuilder<'_>, scope: &str) -> String {
    let is_used = |scope: &str| b.graph().find(&format!("{scope}/Const")).is_some();
    let numbered = (1u64..).map(|number| format!("{scope}_{number}"));
    let mut scopes = std::iter::once(scope.to_owned()).chain(numbered);
    scopes.find(|scope| !is_used(scope)).unwrap_or_else(|| scope.to_owned())
}

struct Nodes<'b, 'r> {
    scope: String,
    b: &'b mut GraphBuilder<'r>,
}

impl Nodes<'_, '_> {
    fn name(&self, name: &str) -> String {
        format!("{}/{name}", self.scope)
    }

    fn unused(&mut self, name: &str) -> String {
        let name = self.name(name);
        self.b.unused_name(&name)
    }

    fn strings(&mut self, name: &str, dims: &[i64], values: &[&str]) -> Result<Output, TrainError> {
        constant(self.b, name, Tensor::from_strings(dims, values)?)
    }

    /// The tensor that is fed with the prefix of the files.
    fn filename(&mut self) -> Result<Output, TrainError> {
        let name = self.name("filename/input");
        let mut value = self.strings(&name, &[], &["model"])?;
        for name in ["filename", "Const"] {
            let name = self.name(name);
            let node = self.b.op("PlaceholderWithDefault").name(&name).input(value);
            value = node.attr("shape", PartialShape::new(&[])?).build()?.into();
        }
        Ok(value)
    }

    /// A variable of the same form, which has no value yet.
    fn copy(&mut self, variable: &Variable) -> Result<Variable, TrainError> {
        let name = self.name(&variable.name);
        let handle = self.b.op("VarHandleOp").name(&name).device(&variable.device);
        let handle = handle.attr("dtype", variable.dtype).attr("shared_name", name.as_str());
        let shape = PartialShape::new(variable.shape.dims())?;
        let handle: Output = handle.attr("shape", shape).build()?.into();
        let read = self.b.op("ReadVariableOp").name(&format!("{name}/Read/ReadVariableOp"));
        let read = read.device(&variable.device).input(handle);
        let value = read.attr("dtype", variable.dtype).build()?.into();
        Ok(Variable { handle, value, ..variable.clone() })
    }

    /// The names and parts of the entries, below the node `below`.
    fn keys(
        &mut self,
        below: &str,
        entries: &[Entry<'_>],
        cpu: &str,
    ) -> Result<[Output; 2], TrainError> {
        let count = entries.len() as i64;
        let names: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
        let slices: Vec<&str> = entries.iter().map(|entry| entry.slice.as_str()).collect();
        let mut made = [None; 2];
        for (made, (name, values)) in
            made.iter_mut().zip([("tensor_names", names), ("shape_and_slices", slices)])
        {
            let value = Tensor::from_strings(&[count], &values)?;
            let node = self.b.op("Const").name(&format!("{below}/{name}")).device(cpu);
            *made = Some(node.attr("dtype", DType::STRING).attr("value", value).build()?);
        }
        let [names, slices] = made.map(|node| node.map(Output::from));
        names.zip(slices).map(|(names, slices)| [names, slices]).ok_or_else(|| {
            TrainError::argument("a saver", "the names and parts of its tensors", "neither")
        })
    }

    /// Saves entries to one file, and gives its name once that is done.
    fn save(
        &mut self,
        filename: Output,
        entries: &[Entry<'_>],
        cpu: &str,
    ) -> Result<Output, TrainError> {
        let name = self.unused("SaveV2");
        let [names, slices] = self.keys(&name, entries, cpu)?;
        let node = self.b.op("SaveV2").name(&name).device(cpu);
        let node = node.input(filename).input(names).input(slices);
        let saved = node.inputs(entries.iter().map(|entry| entry.variable.value)).build()?;
        self.after("control_dependency", filename, saved, cpu)
    }

    /// A value, after a node.
    fn after(
        &mut self,
        name: &str,
        value: Output,
        node: NodeId,
        cpu: &str,
    ) -> Result<Output, TrainError> {
        let name = self.unused(name);
        let made = self.b.op("Identity").name(&name).device(cpu).input(value).control(node);
        Ok(made.build()?.into())
    }

    /// Restores entries from a checkpoint. The node that it returns has the name `group`.
    fn restore(
        &mut self,
        filename: Output,
        entries: &[Entry<'_>],
        cpu: &str,
        group: &str,
    ) -> Result<NodeId, TrainError> {
        let name = self.unused("RestoreV2");
        let [names, slices] = self.keys(&name, entries, cpu)?;
        let dtypes: Vec<DType> = entries.iter().map(|entry| entry.variable.dtype).collect();
        let node = self.b.op("RestoreV2").name(&name).device(cpu).attr("dtypes", dtypes);
        let restored = node.input(filename).input(names).input(slices).build()?;
        let mut assigned = Vec::with_capacity(entries.len());
        for (at, entry) in (0u32..).zip(entries) {
            let variable = entry.variable;
            let value = self.unused("Identity");
            let value = self.b.op("Identity").name(&value).device(&variable.device);
            let value = value.input(Output::new(restored, at)).build()?;
            let assign = self.unused("AssignVariableOp");
            let assign = self.b.op("AssignVariableOp").name(&assign).device(&variable.device);
            assigned.push(assign.input(variable.handle).input(value).build()?);
        }
        self.group(group, &assigned)
    }

    fn group(&mut self, name: &str, nodes: &[NodeId]) -> Result<NodeId, TrainError> {
        let group = self.b.op("NoOp").name(name);
        Ok(nodes.iter().fold(group, |group, node| group.control(*node)).build()?)
    }

    /// Saves each shard to its own temporary bundle, and makes one of them.
    fn save_shards(
        &mut self,
        filename: Output,
        shards: &[(String, Vec<Entry<'_>>)],
    ) -> Result<Output, TrainError> {
        let suffix = self.name("Const_1");
        let suffix = self.strings(&suffix, &[], &["_temp/part"])?;
        let name = self.name("StringJoin");
        let joined = self.b.op("StringJoin").name(&name).input(filename).input(suffix);
        let temporary: Output = joined.build()?.into();
        let name = self.name("num_shards");
        let count = constant(self.b, &name, Tensor::scalar(shards.len() as i32)?)?;
        let mut prefixes = Vec::with_capacity(shards.len());
        let mut saved = Vec::with_capacity(shards.len());
        let mut last_cpu = String::new();
        for (number, (device, entries)) in (0i32..).zip(shards) {
            last_cpu = cpu_of(device)?;
            let name = self.unused("ShardedFilename");
            let shard = format!("{name}/shard");
            let shard = constant(self.b, &shard, Tensor::scalar(number)?)?;
            let node = self.b.op("ShardedFilename").name(&name).device(&last_cpu);
            let prefix: Output = node.input(temporary).input(shard).input(count).build()?.into();
            prefixes.push(prefix);
            saved.push(self.save(prefix, entries, &last_cpu)?.node);
        }
        let name = self.name("MergeV2Checkpoints");
        let pack = self.b.op("Pack").name(&format!("{name}/checkpoint_prefixes"));
        let pack = saved.iter().fold(pack.device(&last_cpu), |pack, node| pack.control(*node));
        let prefixes = pack.inputs(prefixes).attr("axis", 0i64).build()?;
        let merge = self.b.op("MergeV2Checkpoints").name(&name).device(&last_cpu);
        let merge = merge.input(prefixes).input(filename).attr("delete_old_dirs", true).build()?;
        self.after("Identity", filename, merge, &last_cpu)
    }

    fn restore_shards(
        &mut self,
        filename: Output,
        shards: &[(String, Vec<Entry<'_>>)],
    ) -> Result<NodeId, TrainError> {
        let mut groups = Vec::with_capacity(shards.len());
        for (device, entries) in shards {
            let group = self.unused("restore_shard");
            groups.push(self.restore(filename, entries, &cpu_of(device)?, &group)?);
        }
        let name = self.name("restore_all");
        self.group(&name, &groups)
    }
}
