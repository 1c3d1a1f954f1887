//! Tensors in every field and every element type.

use super::build::{Build, message};
use crate::wire::Message;
use crate::{ElementType, LoadError, Tensor, TensorError};

fn tensor(
    element: ElementType,
    dims: &[i64],
    fill: impl FnOnce(&mut Message),
) -> Result<Tensor, TensorError> {
    let tensor = message(|tensor| {
        dims.iter().for_each(|size| tensor.int(1, *size));
        tensor.int(2, element.code().into());
        tensor.bytes(8, "t");
        fill(tensor);
    });
    match crate::Model::from_bytes(&Build::new(17).field(5, &tensor).bytes()) {
        Ok(model) => Ok(Tensor::clone(model.graph.values[0].tensor.as_ref().unwrap())),
        Err(LoadError::Tensor { why, .. }) => Err(why),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn typed_fields_become_little_endian_bytes() {
    use ElementType as E;
    // The field, numbers in it, and the bytes of one element: as onnx.proto says.
    let cases: [(E, u64, i64, &[u8]); 14] = [
        (E::I32, 5, -2, &[0xfe, 0xff, 0xff, 0xff]),
        (E::I16, 5, -2, &[0xfe, 0xff]),
        (E::U16, 5, 0xfffe, &[0xfe, 0xff]),
        (E::I8, 5, -2, &[0xfe]),
        (E::U8, 5, 254, &[0xfe]),
        (E::Bool, 5, 1, &[1]),
        (E::F16, 5, 0x3c00, &[0x00, 0x3c]),
        (E::BF16, 5, 0x3f80, &[0x80, 0x3f]),
        (E::F8E4M3FN, 5, 0x38, &[0x38]),
        (E::I64, 7, -2, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
        (E::U64, 11, -1, &[0xff; 8]),
        (E::U32, 11, 0xffff_fffe, &[0xfe, 0xff, 0xff, 0xff]),
        (E::U4, 5, 0x21, &[0x21]),
        (E::I4, 5, 0xff, &[0xff]),
    ];
    for (element, field, value, bytes) in cases {
        let one = if matches!(element, E::U4 | E::I4) { 2 } else { 1 };
        let found = tensor(element, &[one], |tensor| tensor.int(field, value)).unwrap();
        assert_eq!(found.bytes().unwrap(), bytes, "{element}");
    }
    let floats = tensor(E::F32, &[2], |tensor| {
        tensor.float(4, 1.0);
        tensor.float(4, -2.5);
    });
    let floats = floats.unwrap();
    assert_eq!(floats.bytes().unwrap(), [1.0_f32.to_le_bytes(), (-2.5_f32).to_le_bytes()].concat());
    assert_eq!(floats.ints(), None, "no whole numbers");
    let packed = tensor(E::F64, &[2], |tensor| {
        tensor.bytes(10, [3.0_f64.to_le_bytes(), 4.0_f64.to_le_bytes()].concat());
    });
    assert_eq!(packed.unwrap().ints(), Some(vec![3, 4]));
    let complex = tensor(E::Complex64, &[1], |tensor| tensor.bytes(4, [0; 8])).unwrap();
    assert_eq!(
        (complex.bytes().unwrap().len(), complex.describe().as_str()),
        (8, "complex64 (1,)")
    );
}

#[test]
fn strings_need_not_be_texts() {
    let strings = tensor(ElementType::String, &[2], |tensor| {
        tensor.bytes(6, "a");
        tensor.bytes(6, [0xff]);
    });
    let strings = strings.unwrap();
    assert_eq!(strings.strings().unwrap(), [vec![b'a'], vec![0xff]]);
    assert_eq!(strings.bytes().unwrap_err(), TensorError::Field(ElementType::String));
    let raw = tensor(ElementType::String, &[1], |tensor| tensor.bytes(9, "a"));
    assert_eq!(raw.unwrap_err(), TensorError::Field(ElementType::String));
    let few = tensor(ElementType::String, &[3], |tensor| tensor.bytes(6, "a")).unwrap_err();
    assert_eq!(few.to_string(), "string (3,) needs 3 elements, not 1");
}

#[test]
fn raw_data_of_every_type_are_held_to_their_length() {
    for code in 1..=26 {
        let element = ElementType::from_code(code).unwrap();
        let Some(bytes) = element.bytes(6) else { continue };
        let of = |count: usize| {
            tensor(element, &[2, 3], |tensor| tensor.bytes(9, vec![0; count])).map(|t| t.elements())
        };
        assert_eq!(of(bytes), Ok(6), "{element}");
        assert!(matches!(of(bytes + 1), Err(TensorError::Length { bytes: true, .. })), "{element}");
    }
}

#[test]
fn what_does_not_fit_the_type_is_refused() {
    let wide = tensor(ElementType::U8, &[1], |tensor| tensor.int(5, 300)).unwrap_err();
    assert_eq!(wide.to_string(), "300 is no uint8");
    let wrong = tensor(ElementType::F32, &[1], |tensor| tensor.int(7, 1));
    assert_eq!(wrong.unwrap_err(), TensorError::Field(ElementType::F32));
    let both = tensor(ElementType::I64, &[1], |tensor| {
        tensor.int(7, 1);
        tensor.bytes(9, [0; 8]);
    });
    assert_eq!(both.unwrap_err(), TensorError::Field(ElementType::I64));
    let part = tensor(ElementType::I64, &[1], |tensor| tensor.bytes(3, []));
    assert_eq!(part.unwrap_err(), TensorError::Segment);
    let unknown = message(|tensor| tensor.int(2, 99));
    let said = crate::Model::from_bytes(&Build::new(17).field(5, &unknown).bytes()).unwrap_err();
    assert_eq!(said.to_string(), "tensor \"\": there is no element type 99");
}
