//! The attributes of the standard operators, over all opsets: a name means the same kind of value for nearly all of
//! them, so that kinds are checked by name.

use crate::model::AttributeValue;

/// The newest opset whose attributes are here.
pub(crate) const OPSET: i64 = 26;

/// A kind in words, and the names that have it for some operator; the frequent ones first.
const KINDS: [(&str, &str); 9] = [
    (
        "an integer",
        "axis keepdims noop_with_empty_axes dtype seed group output_datatype stash_type \
         ceil_mode hidden_size layout p periodic saturate align_corners block_size \
         blocksize exclusive ignore_index kv_num_heads onesided output_dtype q_num_heads \
         reverse select_last_index sorted to allowzero antialias batch_axis batch_dims \
         center_point_box chunk_size count_include_pad detect_negative detect_positive end \
         exclude_outside fmod input_forget interleaved inverse is_case_sensitive is_causal \
         k largest left_window_size linear_before_reset max_gram_length max_skip_count \
         maxsplit min_gram_length new_axis num_groups num_heads num_outputs num_scan_inputs \
         offset_group output_height output_width precision qk_matmul_output_mode \
         right_window_size rotary_embedding_dim sample_size sampling_ratio size \
         softmax_precision start storage_order time_axis training_mode transA transB upper \
         value_int broadcast is_test output_sequence spatial",
    ),
    (
        "integers",
        "pads strides dilations kernel_shape axes shape ngram_counts ngram_indexes \
         output_padding output_shape perm pool_int64s pooled_shape scan_input_axes \
         scan_input_directions scan_output_axes scan_output_directions value_ints \
         consumed_inputs directions ends paddings split starts",
    ),
    (
        "a number",
        "alpha seed epsilon scale beta clip p bias high low mean spatial_scale value \
         cubic_coeff_a extrapolation_value gamma lambd momentum softcap value_float \
         height_scale max min ratio width_scale",
    ),
    (
        "a text",
        "mode auto_pad direction reduction coordinate_transformation_mode round_mode to \
         activation approximate case_change_action delimiter equation \
         keep_aspect_ratio_policy locale nearest_mode padding_mode pattern pixel_format \
         update_rule value_string",
    ),
    ("numbers", "activation_alpha activation_beta value_floats weights scales"),
    ("texts", "activations pool_strings stopwords value_strings"),
    ("a tensor", "value"),
    ("a graph", "body else_branch then_branch"),
    ("", "sparse_value type"),
];

/// Whether an attribute of a standard operator is of its kind.
pub(crate) fn check(name: &str, value: &AttributeValue) -> Result<(), String> {
    let kind = match value {
        AttributeValue::Int(_) => 0,
        AttributeValue::Ints(_) => 1,
        AttributeValue::Float(_) => 2,
        AttributeValue::Text(_) => 3,
        AttributeValue::Floats(_) => 4,
        AttributeValue::Texts(_) => 5,
        AttributeValue::Tensor(_) => 6,
        AttributeValue::Graphs(_) => 7,
        // Checked where it is given, or of a kind that has no bearing here.
        AttributeValue::Reference(_) | AttributeValue::Other => return Ok(()),
    };
    let has = |(_, names): &&(&str, &str)| names.split(' ').any(|own| own == name);
    // Names with two underscores are tools' own.
    if KINDS.get(kind).filter(has).is_some() || name.starts_with("__") {
        return Ok(());
    }
    Err(match KINDS.iter().find(has) {
        Some((expected, _)) => format!("its attribute {name} must be {expected}"),
        None => format!("no operator has an attribute {name}"),
    })
}
