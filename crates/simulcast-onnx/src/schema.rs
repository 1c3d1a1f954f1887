//! Field numbers of the messages in `onnx.proto3`, by name.

macro_rules! messages {
    ($($(#[$doc:meta])* $message:ident { $($field:ident = $number:literal,)* })*) => {
        $($(#[$doc])* pub(crate) mod $message {
            #![allow(dead_code, reason = "the schema is whole, its readers need parts")]
            $(pub(crate) const $field: u64 = $number;)*
        })*
    };
}

messages! {
    /// `ModelProto`
    model {
        IR_VERSION = 1,
        PRODUCER_NAME = 2,
        PRODUCER_VERSION = 3,
        GRAPH = 7,
        OPSET_IMPORT = 8,
        FUNCTIONS = 25,
    }
    /// `GraphProto`
    graph {
        NODE = 1,
        NAME = 2,
        INITIALIZER = 5,
        INPUT = 11,
        OUTPUT = 12,
        VALUE_INFO = 13,
        SPARSE_INITIALIZER = 15,
    }
    /// `FunctionProto`
    function {
        NAME = 1,
        INPUT = 4,
        OUTPUT = 5,
        ATTRIBUTE = 6,
        NODE = 7,
        OPSET_IMPORT = 9,
        DOMAIN = 10,
        ATTRIBUTE_PROTO = 11,
        VALUE_INFO = 12,
        OVERLOAD = 13,
    }
    /// `NodeProto`
    node {
        INPUT = 1,
        OUTPUT = 2,
        NAME = 3,
        OP_TYPE = 4,
        ATTRIBUTE = 5,
        DOMAIN = 7,
        OVERLOAD = 8,
    }
    /// `AttributeProto`
    attribute {
        NAME = 1,
        F = 2,
        I = 3,
        S = 4,
        T = 5,
        G = 6,
        FLOATS = 7,
        INTS = 8,
        STRINGS = 9,
        GRAPHS = 11,
        TYPE = 20,
        REF_ATTR_NAME = 21,
    }
    /// `AttributeProto.AttributeType`
    attribute_type {
        FLOAT = 1,
        INT = 2,
        STRING = 3,
        TENSOR = 4,
        GRAPH = 5,
        FLOATS = 6,
        INTS = 7,
        STRINGS = 8,
        GRAPHS = 10,
    }
    /// `OperatorSetIdProto`
    opset {
        DOMAIN = 1,
        VERSION = 2,
    }
    /// `ValueInfoProto`
    value_info {
        NAME = 1,
        TYPE = 2,
    }
    /// `TypeProto`
    value_type {
        TENSOR = 1,
        SEQUENCE = 4,
        MAP = 5,
        OPAQUE = 7,
        SPARSE_TENSOR = 8,
        OPTIONAL = 9,
        DENOTATION = 6,
    }
    /// `TypeProto.Tensor`
    tensor_type {
        ELEM_TYPE = 1,
        SHAPE = 2,
    }
    /// `TensorShapeProto`
    shape {
        DIM = 1,
    }
    /// `TensorShapeProto.Dimension`
    dim {
        VALUE = 1,
        PARAM = 2,
        DENOTATION = 3,
    }
    /// `TensorProto`
    tensor {
        DIMS = 1,
        DATA_TYPE = 2,
        SEGMENT = 3,
        FLOAT_DATA = 4,
        INT32_DATA = 5,
        STRING_DATA = 6,
        INT64_DATA = 7,
        NAME = 8,
        RAW_DATA = 9,
        DOUBLE_DATA = 10,
        UINT64_DATA = 11,
        EXTERNAL_DATA = 13,
        DATA_LOCATION = 14,
    }
    /// `StringStringEntryProto`
    entry {
        KEY = 1,
        VALUE = 2,
    }
}
