//! Attributes of every kind, and lists of them.

use tenon_sdk::{abi::Slot, attr::FuncValue, prelude::*};

register_op!(
    "ZooAttributes",
    outputs = &["facts: string"],
    attrs = &["i: int", "f: float", "b: bool", "s: string", "t: type", "shape: shape"],
    summary = "One text for each attribute.",
);

/// Attributes as texts, which the call returns.
struct Facts {
    facts: Vec<String>,
}

impl Facts {
    fn write(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        c.set_strings(0, &[self.facts.len() as i64], self.facts.iter())
    }
}

struct Attributes(Facts);

impl Kernel for Attributes {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let facts = vec![
            c.attr::<i64>("i")?.to_string(),
            c.attr::<f32>("f")?.to_string(),
            c.attr::<bool>("b")?.to_string(),
            c.attr::<&str>("s")?.to_owned(),
            c.attr::<DType>("t")?.0.to_string(),
            c.attr::<PartialShape>("shape")?.to_string(),
        ];
        Ok(Attributes(Facts { facts }))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        self.0.write(c)
    }
}

register_kernel!("ZooAttributes" on "CPU": Attributes);

register_op!(
    "ZooAttributeLists",
    outputs = &["facts: string"],
    attrs = &[
        "ints: list(int)",
        "floats: list(float)",
        "bools: list(bool)",
        "strings: list(string)",
        "types: list(type)",
        "shapes: list(shape)",
        "tensors: list(tensor)",
        "funcs: list(func)",
    ],
    summary = "One text for each attribute: its items, with a semicolon after each.",
);

struct AttributeLists(Facts);

fn joined<T>(items: Vec<T>, text: impl Fn(&T) -> String) -> String {
    items.iter().map(|item| text(item) + ";").collect()
}

impl Kernel for AttributeLists {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let facts = vec![
            joined(c.attr("ints")?, i64::to_string),
            joined(c.attr("floats")?, f32::to_string),
            joined(c.attr("bools")?, bool::to_string),
            joined::<&str>(c.attr("strings")?, |s| (*s).to_owned()),
            joined::<DType>(c.attr("types")?, |t| t.0.to_string()),
            joined(c.attr("shapes")?, PartialShape::to_string),
            joined::<Slot>(c.attr("tensors")?, |t| format!("{}x{}", t.dtype.0, t.elements)),
            joined::<FuncValue>(c.attr("funcs")?, |f| f.name.clone()),
        ];
        Ok(AttributeLists(Facts { facts }))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        self.0.write(c)
    }
}

register_kernel!("ZooAttributeLists" on "CPU": AttributeLists);

register_op!(
    "ZooAttributeTensor",
    outputs = &["y: float"],
    attrs = &["value: tensor"],
    summary = "The attribute's elements, as a vector.",
);

struct AttributeTensor {
    elements: Vec<f32>,
}

impl Kernel for AttributeTensor {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let value: Slot = c.attr("value")?;
        if value.dtype != DType::FLOAT {
            return Err(KernelError::invalid_argument(format!(
                "attribute value: expected a tensor of float, found {}",
                value.dtype
            )));
        }
        // SAFETY: the tensor of an attribute lies in host memory and holds `elements` floats while `new` runs.
        let elements = unsafe {
            std::slice::from_raw_parts(value.data.cast::<f32>(), value.elements as usize)
        };
        Ok(AttributeTensor { elements: elements.to_vec() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let y = c.output::<f32>(0, &[self.elements.len() as i64])?;
        y.data.copy_from_slice(&self.elements);
        Ok(())
    }
}

register_kernel!("ZooAttributeTensor" on "CPU": AttributeTensor);

register_op!(
    "ZooAttributeFunction",
    outputs = &["facts: string"],
    attrs = &["f: func"],
    summary = "Name, serialised NameAttrList and serialised FunctionDef of a function.",
);

struct AttributeFunction {
    function: FuncValue,
}

impl Kernel for AttributeFunction {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(AttributeFunction { function: c.attr("f")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let FuncValue { name, call, definition } = &self.function;
        c.set_strings(0, &[3], [name.as_bytes(), call, definition].into_iter())
    }
}

register_kernel!("ZooAttributeFunction" on "CPU": AttributeFunction);
