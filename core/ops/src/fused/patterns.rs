//! The fusions of the standard ops, in the notation of `tenon_framework::fusion`. Fused ops are
//! fused further, step by step: a product with its bias, then both with an activation.

use tenon_author::register_fusion;

/// The fusions of one product or convolution: `$op` with attributes `$attrs` becomes `$fused`.
/// `$last` are the attributes with channels last, for which an added vector is a bias; `$format` is
/// the format of `BiasAdd`.
macro_rules! product {
    ($op:literal, $fused:literal, $attrs:literal, $last:literal, $format:literal:
     $bias:literal, $add:literal, $act:literal, $more:literal, $leaky:literal, $gelu:literal, $tanh:literal, $rest:literal) => {
        register_fusion!(
            $bias: concat!("BiasAdd(", $op, "(a, b; ", $attrs, "), bias; data_format = ", $format, ")")
                => concat!($fused, "(a, b, bias; ", $attrs, ", fused_ops = ['BiasAdd'])"),
        );
        register_fusion!(
            $add: concat!("AddV2|Add(p@", $op, "(a, b; ", $last, "), bias)")
                => concat!($fused, "(a, b, bias; ", $last, ", fused_ops = ['BiasAdd'])"),
            where = ["channels(bias, p)"],
        );
        register_fusion!(
            $act: concat!("act:Relu|Relu6|Elu|Tanh|Sigmoid(", $op, "(a, b; ", $attrs, "))")
                => concat!($fused, "(a, b; ", $attrs, ", fused_ops = [$act])"),
        );
        register_fusion!(
            $more: concat!("act:Relu|Relu6|Elu|Tanh|Sigmoid(", $fused, "(a, b, *args; ", $attrs,
                ", fused_ops = $ops, epsilon = $eps, leakyrelu_alpha = $alpha))")
                => concat!($fused, "(a, b, *args; ", $attrs,
                ", epsilon = $eps, leakyrelu_alpha = $alpha, fused_ops = [*$ops, $act])"),
        );
        register_fusion!(
            $leaky: concat!("LeakyRelu(", $fused, "(a, b, *args; ", $attrs, ", fused_ops = $ops, epsilon = $eps); alpha = $alpha)")
                => concat!($fused, "(a, b, *args; ", $attrs,
                ", epsilon = $eps, leakyrelu_alpha = $alpha, fused_ops = [*$ops, 'LeakyRelu'])"),
        );
        register_fusion!(
            $gelu: concat!("_FusedGelu(", $fused, "(a, b, *args; ", $attrs, ", fused_ops = $ops, epsilon = $eps); approximate = false)")
                => concat!($fused, "(a, b, *args; ", $attrs, ", epsilon = $eps, fused_ops = [*$ops, 'GeluExact'])"),
        );
        register_fusion!(
            $tanh: concat!("_FusedGelu(", $fused, "(a, b, *args; ", $attrs, ", fused_ops = $ops, epsilon = $eps); approximate = true)")
                => concat!($fused, "(a, b, *args; ", $attrs, ", epsilon = $eps, fused_ops = [*$ops, 'GeluApproximate'])"),
        );
        register_fusion!(
            $rest: concat!("AddV2|Add(p@", $fused, "(a, b, *args; ", $attrs, ", fused_ops = $ops, epsilon = $eps, leakyrelu_alpha = $alpha), r)")
                => concat!($fused, "(a, b, *args, r; ", $attrs,
                ", epsilon = $eps, leakyrelu_alpha = $alpha, fused_ops = [*$ops, 'Add'])"),
            where = ["same_shape(p, r)"],
        );
    };
}

product!(
    "MatMul", "_FusedMatMul", "transpose_a = $ta, transpose_b = $tb",
    "transpose_a = $ta, transpose_b = $tb", "'NHWC'":
    "matmul_bias", "matmul_add", "matmul_activation", "fused_matmul_activation", "fused_matmul_leaky_relu",
    "fused_matmul_gelu", "fused_matmul_gelu_tanh", "fused_matmul_residual"
);

// The gradient of an activation, after the product that gives the gradient of its output.

register_fusion!(
    "matmul_relu_grad": "ReluGrad(p@MatMul(a, b; transpose_a = $ta, transpose_b = $tb), y)"
        => "_FusedMatMul(a, b, y; transpose_a = $ta, transpose_b = $tb, fused_ops = ['ReluGrad'])",
    where = ["same_shape(p, y)"],
);

register_fusion!(
    "matmul_tanh_grad": "TanhGrad(y, p@MatMul(a, b; transpose_a = $ta, transpose_b = $tb))"
        => "_FusedMatMul(a, b, y; transpose_a = $ta, transpose_b = $tb, fused_ops = ['TanhGrad'])",
    where = ["same_shape(p, y)"],
);

register_fusion!(
    "matmul_sigmoid_grad": "SigmoidGrad(y, p@MatMul(a, b; transpose_a = $ta, transpose_b = $tb))"
        => "_FusedMatMul(a, b, y; transpose_a = $ta, transpose_b = $tb, fused_ops = ['SigmoidGrad'])",
    where = ["same_shape(p, y)"],
);

product!(
    "Conv2D", "_FusedConv2D",
    "strides = $s, padding = $p, explicit_paddings = $x, data_format = $d, dilations = $l",
    "strides = $s, padding = $p, explicit_paddings = $x, data_format = 'NHWC', dilations = $l", "$d":
    "conv_bias", "conv_add", "conv_activation", "fused_conv_activation", "fused_conv_leaky_relu", "fused_conv_gelu",
    "fused_conv_gelu_tanh", "fused_conv_residual"
);

product!(
    "DepthwiseConv2dNative", "_FusedDepthwiseConv2dNative",
    "strides = $s, padding = $p, explicit_paddings = $x, data_format = $d, dilations = $l",
    "strides = $s, padding = $p, explicit_paddings = $x, data_format = 'NHWC', dilations = $l", "$d":
    "depthwise_bias", "depthwise_add", "depthwise_activation", "fused_depthwise_activation",
    "fused_depthwise_leaky_relu", "fused_depthwise_gelu", "fused_depthwise_gelu_tanh", "fused_depthwise_residual"
);

register_fusion!(
    "conv_batch_norm": "FusedBatchNormV3(Conv2D(a, b; strides = $s, padding = $p, explicit_paddings = $x, data_format = $d, dilations = $l), scale, offset, mean, variance; is_training = false, data_format = $d, epsilon = $eps)"
        => "_FusedConv2D(a, b, scale, offset, mean, variance; strides = $s, padding = $p, explicit_paddings = $x, data_format = $d, dilations = $l, epsilon = $eps, fused_ops = ['FusedBatchNorm'])",
    where = ["same_type(a, scale)"],
);

register_fusion!(
    "depthwise_batch_norm": "FusedBatchNormV3(DepthwiseConv2dNative(a, b; strides = $s, padding = $p, explicit_paddings = $x, data_format = $d, dilations = $l), scale, offset, mean, variance; is_training = false, data_format = $d, epsilon = $eps)"
        => "_FusedDepthwiseConv2dNative(a, b, scale, offset, mean, variance; strides = $s, padding = $p, explicit_paddings = $x, data_format = $d, dilations = $l, epsilon = $eps, fused_ops = ['FusedBatchNorm'])",
    where = ["same_type(a, scale)"],
);

// Layer normalisation as frameworks express it: by its formula, with a root or its reciprocal, or
// as two products like batch normalisation.

register_fusion!(
    "layer_norm": "AddV2|Add(Mul(Mul(d@Sub(x, m@Mean(x, axes; keep_dims = true)), Rsqrt(AddV2|Add(Mean(Square(d), axes2; keep_dims = true), eps))), scale), offset)"
        => "_FusedLayerNorm(x, scale, offset; epsilon = number(eps))",
    where = ["last_axis(axes, x)", "last_axis(axes2, x)", "channels(scale, x)", "channels(offset, x)"],
);

register_fusion!(
    "layer_norm_difference": "AddV2|Add(Mul(Mul(Sub(x, m@Mean(x, axes; keep_dims = true)), Rsqrt(AddV2|Add(Mean(SquaredDifference(x, m), axes2; keep_dims = true), eps))), scale), offset)"
        => "_FusedLayerNorm(x, scale, offset; epsilon = number(eps))",
    where = ["last_axis(axes, x)", "last_axis(axes2, x)", "channels(scale, x)", "channels(offset, x)"],
);

register_fusion!(
    "layer_norm_quotient": "AddV2|Add(Mul(RealDiv(d@Sub(x, m@Mean(x, axes; keep_dims = true)), Sqrt(AddV2|Add(Mean(Square(d), axes2; keep_dims = true), eps))), scale), offset)"
        => "_FusedLayerNorm(x, scale, offset; epsilon = number(eps))",
    where = ["last_axis(axes, x)", "last_axis(axes2, x)", "channels(scale, x)", "channels(offset, x)"],
);

register_fusion!(
    "layer_norm_moments": "AddV2|Add(Mul(x, i@Mul(Rsqrt(AddV2|Add(Mean(SquaredDifference(x, m@Mean(x, axes; keep_dims = true)), axes2; keep_dims = true), eps)), scale)), Sub(offset, Mul(m, i)))"
        => "_FusedLayerNorm(x, scale, offset; epsilon = number(eps))",
    where = ["last_axis(axes, x)", "last_axis(axes2, x)", "channels(scale, x)", "channels(offset, x)"],
);

register_fusion!(
    "layer_norm_moments_reshaped": "AddV2|Add(Mul(x, i@Mul(Rsqrt(AddV2|Add(Mean(SquaredDifference(x, m@Mean(x, axes; keep_dims = true)), axes2; keep_dims = true), eps)), scale)), AddV2|Add(Mul(Neg(m), i), offset))"
        => "_FusedLayerNorm(x, scale, offset; epsilon = number(eps))",
    where = ["last_axis(axes, x)", "last_axis(axes2, x)", "channels(scale, x)", "channels(offset, x)"],
);

register_fusion!(
    "layer_norm_moments_sub": "AddV2|Add(Mul(x, i@Mul(Rsqrt(AddV2|Add(Mean(SquaredDifference(x, m@Mean(x, axes; keep_dims = true)), axes2; keep_dims = true), eps)), scale)), Sub(offset, Mul(i, m)))"
        => "_FusedLayerNorm(x, scale, offset; epsilon = number(eps))",
    where = ["last_axis(axes, x)", "last_axis(axes2, x)", "channels(scale, x)", "channels(offset, x)"],
);

// GELU, with the constants sqrt(1/2), sqrt(2), sqrt(2/pi) and 0.044715.

register_fusion!(
    "gelu_product": "Mul(Mul(0.5, x), AddV2|Add(1, Erf(Mul(x, 0.7071067811865476))))"
        => "_FusedGelu(x; approximate = false)",
);

register_fusion!(
    "gelu_quotient": "Mul(Mul(0.5, x), AddV2|Add(1, Erf(RealDiv(x, 1.4142135623730951))))"
        => "_FusedGelu(x; approximate = false)",
);

register_fusion!(
    "gelu_complement": "Mul(Mul(0.5, x), Erfc(Mul(Neg(x), 0.7071067811865476)))"
        => "_FusedGelu(x; approximate = false)",
);

register_fusion!(
    "gelu_scaled_late": "Mul(x, Mul(0.5, AddV2|Add(1, Erf(Mul(x, 0.7071067811865476)))))"
        => "_FusedGelu(x; approximate = false)",
);

register_fusion!(
    "gelu_scaled_late_quotient": "Mul(x, Mul(0.5, AddV2|Add(1, Erf(RealDiv(x, 1.4142135623730951)))))"
        => "_FusedGelu(x; approximate = false)",
);

register_fusion!(
    "gelu_tanh_power": "Mul(Mul(0.5, x), AddV2|Add(1, Tanh(Mul(0.7978845608028654, AddV2|Add(x, Mul(0.044715, Pow(x, 3)))))))"
        => "_FusedGelu(x; approximate = true)",
);

register_fusion!(
    "gelu_tanh_products": "Mul(Mul(0.5, x), AddV2|Add(1, Tanh(Mul(0.7978845608028654, AddV2|Add(x, Mul(0.044715, Mul(x, Mul(x, x))))))))"
        => "_FusedGelu(x; approximate = true)",
);

register_fusion!(
    "gelu_tanh_square": "Mul(Mul(0.5, x), AddV2|Add(1, Tanh(Mul(0.7978845608028654, AddV2|Add(x, Mul(0.044715, Mul(x, Square(x))))))))"
        => "_FusedGelu(x; approximate = true)",
);

// Attention: a product of queries and keys, optionally scaled and masked, a softmax, and the
// product with the values.

/// The fusions of attention: `$scores` is the product of queries and keys, `$values` precedes the
/// values, and `$end` ends both.
macro_rules! attention {
    ($scores:literal, $values:literal, $end:literal, $layout:literal:
     $plain:literal, $scaled:literal, $masked:literal, $both:literal, $kept:literal, $scaled_kept:literal,
     $zeroed:literal, $scaled_zeroed:literal) => {
        register_fusion!(
            $plain: concat!($values, "(Softmax(", $scores, "), v; ", $end, ")")
                => concat!("_FusedAttention(q, k, v; num_mask = 0, num_keep = 0, layout = ", $layout, ")"),
        );
        register_fusion!(
            $scaled: concat!($values, "(Softmax(Mul(", $scores, ", c)), v; ", $end, ")")
                => concat!("_FusedAttention(q, k, v; num_mask = 0, num_keep = 0, scale = number(c), layout = ", $layout, ")"),
            where = ["constant(c)", "scalar(c)"],
        );
        register_fusion!(
            $masked: concat!($values, "(Softmax(AddV2|Add(", $scores, ", mask)), v; ", $end, ")")
                => concat!("_FusedAttention(q, k, v, mask; num_mask = 1, num_keep = 0, layout = ", $layout, ")"),
        );
        register_fusion!(
            $both: concat!($values, "(Softmax(AddV2|Add(Mul(", $scores, ", c), mask)), v; ", $end, ")")
                => concat!("_FusedAttention(q, k, v, mask; num_mask = 1, num_keep = 0, scale = number(c), layout = ", $layout, ")"),
            where = ["constant(c)", "scalar(c)"],
        );
        register_fusion!(
            $kept: concat!($values, "(Softmax(SelectV2(keep, ", $scores, ", low)), v; ", $end, ")")
                => concat!("_FusedAttention(q, k, v, keep; num_mask = 0, num_keep = 1, dropped = number(low), layout = ", $layout, ")"),
            where = ["constant(low)", "scalar(low)"],
        );
        register_fusion!(
            $scaled_kept: concat!($values, "(Softmax(SelectV2(keep, Mul(", $scores, ", c), low)), v; ", $end, ")")
                => concat!("_FusedAttention(q, k, v, keep; num_mask = 0, num_keep = 1, scale = number(c), dropped = number(low), layout = ", $layout, ")"),
            where = ["constant(c)", "scalar(c)", "constant(low)", "scalar(low)"],
        );
        register_fusion!(
            $zeroed: concat!($values, "(SelectV2(keep, Softmax(SelectV2(keep, ", $scores, ", low)), 0), v; ", $end, ")")
                => concat!("_FusedAttention(q, k, v, keep; num_mask = 0, num_keep = 1, dropped = number(low), zero_dropped = true, layout = ", $layout, ")"),
            where = ["constant(low)", "scalar(low)"],
        );
        register_fusion!(
            $scaled_zeroed: concat!($values, "(SelectV2(keep, Softmax(SelectV2(keep, Mul(", $scores, ", c), low)), 0), v; ", $end, ")")
                => concat!("_FusedAttention(q, k, v, keep; num_mask = 0, num_keep = 1, scale = number(c), dropped = number(low), zero_dropped = true, layout = ", $layout, ")"),
            where = ["constant(c)", "scalar(c)", "constant(low)", "scalar(low)"],
        );
    };
}

attention!(
    "BatchMatMulV2(q, k; adj_x = false, adj_y = true)", "BatchMatMulV2", "adj_x = false, adj_y = false",
    "'HEADS_FIRST'":
    "attention", "attention_scaled", "attention_masked", "attention_scaled_masked", "attention_kept",
    "attention_scaled_kept", "attention_zeroed",
    "attention_scaled_zeroed"
);

attention!(
    "Einsum(q, k; equation = 'bmhd,bnhd->bhmn')", "Einsum", "equation = 'bhmn,bnhe->bmhe'", "'HEADS_INSIDE'":
    "attention_labels", "attention_labels_scaled", "attention_labels_masked", "attention_labels_scaled_masked",
    "attention_labels_kept", "attention_labels_scaled_kept", "attention_labels_zeroed",
    "attention_labels_scaled_zeroed"
);

attention!(
    "Einsum(k, q; equation = 'bnhd,bmhd->bhmn')", "Einsum", "equation = 'bhmn,bnhe->bmhe'", "'HEADS_INSIDE'":
    "attention_keys_first", "attention_keys_first_scaled", "attention_keys_first_masked",
    "attention_keys_first_scaled_masked", "attention_keys_first_kept", "attention_keys_first_scaled_kept", "attention_keys_first_zeroed",
    "attention_keys_first_scaled_zeroed"
);

register_fusion!(
    "softmax_scale_masked": "Softmax(AddV2|Add(Mul(x, c), mask))"
        => "_FusedSoftmaxScale(x, mask; scale = number(c))",
    where = ["constant(c)", "scalar(c)"],
);

register_fusion!(
    "softmax_scale": "Softmax(Mul(x, c))" => "_FusedSoftmaxScale(x; scale = number(c))",
    where = ["constant(c)", "scalar(c)"],
);
