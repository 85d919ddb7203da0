use tenon_sdk::prelude::*;

const NAME: &str = "relu_twice";

register_fusion!("no_result": "Relu(Relu(x))");
register_fusion!("an_arrow_of_another_kind": "Relu(Relu(x))" -> "Relu(x)");
register_fusion!(NAME: "Relu(Relu(x))" => "Relu(x)");
register_fusion!("unknown_option": "Relu(Relu(x))" => "Relu(x)", when = ["scalar(x)"]);
register_fusion!("a_condition_alone": "Relu(Relu(x))" => "Relu(x)", where = "scalar(x)");

fn main() {}
