//! The graph as a pass of a library sees it.

use crate::attrs::AttrReader;
use std::marker::PhantomData;
use tenon_abi::{
    Code, DType, Edge, Host, MAX_RANK, NO_NODE, PassAttr, PassCall, PassNode, PassTable, Slot, Str,
};
use tenon_framework::{
    KernelError, PartialShape,
    attr::{AttrMap, AttrValue},
    attr_view::AttrTable,
    plugin::{guard, install_host},
};

/// A node of the graph.
pub type NodeNumber = u32;

/// A graph, while a pass runs over it. Numbers of nodes stay the same; new nodes have new ones.
pub struct PassContext<'a> {
    call: *mut PassCall,
    table: &'a PassTable,
    lent: PhantomData<&'a mut PassCall>,
}

macro_rules! entry {
    ($context:expr, $name:ident $(, $arg:expr)*) => {{
        let entry = $context.table.$name.expect("the host fills every entry");
        // SAFETY: an entry of the host's table with the run that it lent.
        unsafe { entry($context.call $(, $arg)*) }
    }};
}

fn edge(tensor: (u32, u32)) -> Edge {
    Edge { node: tensor.0, output: tensor.1 }
}

impl PassContext<'_> {
    /// The nodes that run, sources first.
    pub fn nodes(&self) -> Vec<NodeNumber> {
        let count = entry!(self, nodes, std::ptr::null_mut(), 0);
        let mut nodes = vec![0; count as usize];
        let again = entry!(self, nodes, nodes.as_mut_ptr(), count);
        nodes.truncate(again as usize);
        nodes
    }

    fn text(&self, text: Str) -> String {
        // SAFETY: the host's text is readable until the next edit; it is copied here.
        String::from_utf8_lossy(unsafe { text.bytes() }).into_owned()
    }

    /// Name of a node.
    pub fn name(&self, node: NodeNumber) -> String {
        self.text(entry!(self, name, node))
    }

    /// Op of a node.
    pub fn op(&self, node: NodeNumber) -> String {
        self.text(entry!(self, op, node))
    }

    /// Full name of the device on which a node runs.
    pub fn device(&self, node: NodeNumber) -> String {
        self.text(entry!(self, device, node))
    }

    fn read<T>(
        &self,
        node: NodeNumber,
        name: &str,
        get: impl FnOnce(&AttrReader<'_>, &str) -> Result<T, KernelError>,
    ) -> Result<T, KernelError> {
        let attrs = entry!(self, attrs, node);
        if attrs.is_null() {
            return Err(KernelError::invalid_argument(format!("there is no node {node}")));
        }
        // SAFETY: the attributes are lent until the next edit; what is read of them is copied before.
        get(&unsafe { AttrReader::new(attrs) }, name)
    }

    /// An integer attribute of a node.
    ///
    /// # Errors
    /// There is no such node, no such attribute, or it is of another type. The methods below have the same errors.
    pub fn int(&self, node: NodeNumber, name: &str) -> Result<i64, KernelError> {
        self.read(node, name, |attrs, name| attrs.get::<i64>(name))
    }

    /// A float attribute of a node.
    ///
    /// # Errors
    /// As [`PassContext::int`].
    pub fn float(&self, node: NodeNumber, name: &str) -> Result<f32, KernelError> {
        self.read(node, name, |attrs, name| attrs.get::<f32>(name))
    }

    /// A bool attribute of a node.
    ///
    /// # Errors
    /// As [`PassContext::int`].
    pub fn flag(&self, node: NodeNumber, name: &str) -> Result<bool, KernelError> {
        self.read(node, name, |attrs, name| attrs.get::<bool>(name))
    }

    /// A type attribute of a node.
    ///
    /// # Errors
    /// As [`PassContext::int`].
    pub fn type_of(&self, node: NodeNumber, name: &str) -> Result<DType, KernelError> {
        self.read(node, name, |attrs, name| attrs.get::<DType>(name))
    }

    /// A text attribute of a node.
    ///
    /// # Errors
    /// As [`PassContext::int`].
    pub fn string(&self, node: NodeNumber, name: &str) -> Result<String, KernelError> {
        self.read(node, name, |attrs, name| attrs.get::<&str>(name).map(str::to_owned))
    }

    /// An attribute of a node that is a list of integers.
    ///
    /// # Errors
    /// As [`PassContext::int`].
    pub fn ints(&self, node: NodeNumber, name: &str) -> Result<Vec<i64>, KernelError> {
        self.read(node, name, |attrs, name| attrs.get::<Vec<i64>>(name))
    }

    /// The data inputs of a node: node and output of each.
    pub fn inputs(&self, node: NodeNumber) -> Vec<(NodeNumber, u32)> {
        let count = entry!(self, input_count, node);
        let input = |index| entry!(self, input, node, index);
        (0..count).map(input).map(|edge| (edge.node, edge.output)).collect()
    }

    /// The node that makes an input of a node; `None` if the input is fed or does not exist.
    pub fn source(&self, node: NodeNumber, index: usize) -> Option<NodeNumber> {
        let found = entry!(self, input, node, u32::try_from(index).ok()?);
        let fed = found.node == NO_NODE || entry!(self, is_fed, found) != 0;
        (!fed).then_some(found.node)
    }

    /// Number of outputs of a node.
    pub fn output_count(&self, node: NodeNumber) -> usize {
        entry!(self, output_count, node) as usize
    }

    /// Element type of a tensor.
    pub fn dtype(&self, tensor: (NodeNumber, u32)) -> DType {
        entry!(self, dtype, edge(tensor))
    }

    /// Shape of a tensor, as far as it is known.
    pub fn shape(&self, tensor: (NodeNumber, u32)) -> PartialShape {
        let mut dims = [0; MAX_RANK];
        let rank = entry!(self, shape, edge(tensor), dims.as_mut_ptr(), MAX_RANK as u32);
        let known = usize::try_from(rank).ok().and_then(|rank| dims.get(..rank));
        known.and_then(|dims| PartialShape::new(dims).ok()).unwrap_or_default()
    }

    /// Whether a tensor is the same in every step, and each of its elements is this one.
    pub fn is_constant<T: tenon_framework::element::Element + PartialEq>(
        &self,
        tensor: (NodeNumber, u32),
        value: T,
    ) -> bool {
        let slot: *const Slot = entry!(self, constant, edge(tensor));
        // SAFETY: null, or a slot in host memory that is lent until the next edit.
        unsafe {
            let Some(slot) = slot.as_ref().filter(|slot| slot.dtype == T::DTYPE) else {
                return false;
            };
            let elements = slot.elements as usize;
            let all = std::slice::from_raw_parts(slot.data.cast::<T>().cast_const(), elements);
            elements > 0 && all.iter().all(|found| *found == value)
        }
    }

    /// How many inputs of nodes read a tensor.
    pub fn uses(&self, tensor: (NodeNumber, u32)) -> usize {
        entry!(self, uses, edge(tensor)) as usize
    }

    /// Whether a feed, a fetch or a target names the node.
    pub fn is_kept(&self, node: NodeNumber) -> bool {
        entry!(self, is_kept, node) != 0
    }

    /// Whether the node may be replaced.
    pub fn is_rewritable(&self, node: NodeNumber) -> bool {
        entry!(self, is_rewritable, node) != 0
    }

    fn checked(code: Code) -> Result<(), KernelError> {
        // The host keeps the message: a pass that returns this error returns that message with the code.
        if code.is_ok() { Ok(()) } else { Err(KernelError::new(code, "the host refused an edit")) }
    }

    /// Replaces a node by another one of the same name.
    ///
    /// # Errors
    /// The host refuses the edit; then nothing has changed, and the pass may go on. The edits below have the same
    /// errors.
    pub fn replace(&self, node: NodeNumber, new: &NewNode) -> Result<(), KernelError> {
        new.with(|raw| Self::checked(entry!(self, replace, node, raw)))
    }

    /// Adds a node on the device of `near`; its name is derived from that of `near`.
    ///
    /// # Errors
    /// As [`PassContext::replace`].
    pub fn add(
        &self,
        near: NodeNumber,
        suffix: &str,
        new: &NewNode,
    ) -> Result<NodeNumber, KernelError> {
        let mut made = NO_NODE;
        let suffix = Str { ptr: suffix.as_ptr(), len: suffix.len() };
        new.with(|raw| Self::checked(entry!(self, add, near, suffix, raw, &raw mut made)))?;
        Ok(made)
    }

    /// Makes the readers of `from` read `to`.
    ///
    /// # Errors
    /// As [`PassContext::replace`].
    pub fn redirect(
        &self,
        from: (NodeNumber, u32),
        to: (NodeNumber, u32),
    ) -> Result<(), KernelError> {
        Self::checked(entry!(self, redirect, edge(from), edge(to)))
    }

    /// Removes a node whose value is that of its input `index`; its readers read the input.
    ///
    /// # Errors
    /// As [`PassContext::replace`].
    pub fn bypass(&self, node: NodeNumber, index: usize) -> Result<(), KernelError> {
        Self::checked(entry!(self, bypass, node, index as u32))
    }

    /// Reports a change of a node, for `tenon explain`.
    pub fn note(&self, node: NodeNumber, text: &str) {
        entry!(self, note, node, Str { ptr: text.as_ptr(), len: text.len() });
    }
}

/// A node that a pass makes.
#[derive(Debug, Clone, Default)]
pub struct NewNode {
    op: String,
    like: Option<NodeNumber>,
    inputs: Vec<(NodeNumber, u32)>,
    control: Vec<NodeNumber>,
    attrs: AttrMap,
}

impl NewNode {
    /// A node of this op.
    pub fn new(op: &str) -> NewNode {
        NewNode { op: op.to_owned(), ..NewNode::default() }
    }

    /// Begins with the attributes of another node.
    #[must_use]
    pub fn like(mut self, node: NodeNumber) -> NewNode {
        self.like = Some(node);
        self
    }

    /// Adds a data input: node and output.
    #[must_use]
    pub fn input(mut self, tensor: (NodeNumber, u32)) -> NewNode {
        self.inputs.push(tensor);
        self
    }

    /// Adds a node that runs before this one.
    #[must_use]
    pub fn after(mut self, node: NodeNumber) -> NewNode {
        self.control.push(node);
        self
    }

    /// Sets an attribute. Attributes that the inputs determine or that have a default need not be set.
    #[must_use]
    pub fn attr(mut self, name: &str, value: impl Into<AttrValue>) -> NewNode {
        self.attrs.insert(name.to_owned(), value.into());
        self
    }

    fn with<R>(&self, body: impl FnOnce(*const PassNode) -> R) -> R {
        let table = AttrTable::new(self.attrs.clone());
        let named = self.attrs.keys();
        let attrs: Vec<PassAttr> = named
            .filter_map(|name| {
                let value = table.view(name)?;
                Some(PassAttr { name: Str { ptr: name.as_ptr(), len: name.len() }, value })
            })
            .collect();
        let inputs: Vec<Edge> = self.inputs.iter().map(|&tensor| edge(tensor)).collect();
        let node = PassNode {
            struct_size: size_of::<PassNode>() as u32,
            like: self.like.unwrap_or(NO_NODE),
            op: Str { ptr: self.op.as_ptr(), len: self.op.len() },
            inputs: inputs.as_ptr(),
            input_count: inputs.len(),
            control: self.control.as_ptr(),
            control_count: self.control.len(),
            attrs: attrs.as_ptr(),
            attr_count: attrs.len(),
        };
        body(&raw const node)
    }
}

/// Runs the body of a pass; a panic in it is an error.
///
/// # Safety
/// What the host gives to a pass: its table, a run and the table of the run.
#[doc(hidden)]
pub unsafe fn enter_pass(
    host: *const Host,
    call: *mut PassCall,
    table: *const PassTable,
    body: fn(&PassContext<'_>) -> Result<(), KernelError>,
) -> Code {
    // SAFETY: the host gives a pass its table, which lives as long as the process, and a run with the run's table,
    // which live through the call; the caller passes them on.
    let context = unsafe {
        install_host(host, std::ptr::null());
        PassContext { call, table: &*table, lent: PhantomData }
    };
    let fail = |code: Code, text: &str| {
        entry!(context, fail, code, Str { ptr: text.as_ptr(), len: text.len() })
    };
    match guard(|| body(&context)) {
        Ok(Ok(())) => Code::OK,
        // The host has kept its own message already.
        Ok(Err(error)) if error.message == "the host refused an edit" => error.code,
        Ok(Err(error)) => fail(error.code, &error.message),
        Err(panic) => fail(Code::INTERNAL, &format!("the pass panicked: {panic}")),
    }
}
