//! The protobuf wire format: the fields of a message over a slice, and messages written back.
//!
//! Models come from outside. A reader here borrows from the file and follows no length that reaches
//! beyond the message around it, so it allocates nothing and recurses nowhere. Each field keeps its
//! own bytes: a rewritten message copies the fields that it does not know.

use std::borrow::Cow;
use std::fmt;

/// Why bytes are no protobuf message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WireError {
    /// The message ends within a field.
    Truncated,
    /// A variable-length number has more than ten bytes.
    Number,
    /// A field has a number or a kind that protobuf does not know.
    Kind,
    /// A field is of another kind than the schema says.
    Mismatch,
    /// A text is not UTF-8.
    Text,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "the message ends within a field",
            Self::Number => "a number has more than ten bytes",
            Self::Kind => "a field has an unknown kind",
            Self::Mismatch => "a field has another kind than its schema says",
            Self::Text => "a text is not UTF-8",
        })
    }
}

#[derive(Clone, Copy, Debug)]
enum Payload<'a> {
    Number(u64),
    Fixed64([u8; 8]),
    Fixed32([u8; 4]),
    Bytes(&'a [u8]),
}

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    pub(crate) number: u64,
    /// The whole field as it stands in the message.
    pub(crate) whole: &'a [u8],
    payload: Payload<'a>,
}

impl<'a> Field<'a> {
    pub(crate) fn bytes(&self) -> Result<&'a [u8], WireError> {
        match self.payload {
            Payload::Bytes(bytes) => Ok(bytes),
            _ => Err(WireError::Mismatch),
        }
    }

    pub(crate) fn text(&self) -> Result<&'a str, WireError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| WireError::Text)
    }

    pub(crate) fn fields(&self) -> Result<Fields<'a>, WireError> {
        Ok(Fields::new(self.bytes()?))
    }

    /// A signed number; protobuf writes negative ones as their 64-bit pattern.
    pub(crate) fn int(&self) -> Result<i64, WireError> {
        match self.payload {
            Payload::Number(number) => Ok(number.cast_signed()),
            _ => Err(WireError::Mismatch),
        }
    }

    pub(crate) fn float(&self) -> Result<f32, WireError> {
        match self.payload {
            Payload::Fixed32(bytes) => Ok(f32::from_le_bytes(bytes)),
            _ => Err(WireError::Mismatch),
        }
    }

    /// The numbers of a repeated field: all of them in one, or one.
    pub(crate) fn ints(&self, mut each: impl FnMut(u64)) -> Result<(), WireError> {
        match self.payload {
            Payload::Number(number) => each(number),
            Payload::Bytes(mut rest) => {
                while !rest.is_empty() {
                    each(number(&mut rest)?);
                }
            }
            _ => return Err(WireError::Mismatch),
        }
        Ok(())
    }

    /// The little-endian bytes of a repeated field of fixed size `N`: all in one, or one element.
    pub(crate) fn fixed<const N: usize>(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        match &self.payload {
            Payload::Fixed32(bytes) if N == 4 => out.extend_from_slice(bytes),
            Payload::Fixed64(bytes) if N == 8 => out.extend_from_slice(bytes),
            Payload::Bytes(bytes) if bytes.len().is_multiple_of(N) => out.extend_from_slice(bytes),
            _ => return Err(WireError::Mismatch),
        }
        Ok(())
    }
}

/// The fields of a message, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn read(&mut self) -> Result<Field<'a>, WireError> {
        let start = self.rest;
        let tag = number(&mut self.rest)?;
        let payload = match tag & 7 {
            0 => Payload::Number(number(&mut self.rest)?),
            1 => Payload::Fixed64(*self.array()?),
            2 => {
                let length = number(&mut self.rest)?;
                let length = usize::try_from(length).map_err(|_| WireError::Truncated)?;
                let (bytes, rest) =
                    self.rest.split_at_checked(length).ok_or(WireError::Truncated)?;
                self.rest = rest;
                Payload::Bytes(bytes)
            }
            5 => Payload::Fixed32(*self.array()?),
            _ => return Err(WireError::Kind),
        };
        match tag >> 3 {
            0 => Err(WireError::Kind),
            number => {
                let whole = &start[..start.len() - self.rest.len()];
                Ok(Field { number, whole, payload })
            }
        }
    }

    fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], WireError> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(array)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.read();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

fn number(rest: &mut &[u8]) -> Result<u64, WireError> {
    let mut value = 0_u64;
    for (position, byte) in rest.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(7 * position as u32).unwrap_or(0);
        if byte & 0x80 == 0 {
            *rest = &rest[position + 1..];
            return Ok(value);
        }
    }
    Err(if rest.len() < 10 { WireError::Truncated } else { WireError::Number })
}

/// A message that is being written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A field as it was read.
    pub(crate) fn copy(&mut self, field: &Field<'_>) {
        self.0.extend_from_slice(field.whole);
    }

    pub(crate) fn int(&mut self, field: u64, value: i64) {
        self.number(field << 3);
        self.number(value.cast_unsigned());
    }

    #[cfg(test)]
    pub(crate) fn float(&mut self, field: u64, value: f32) {
        self.number(field << 3 | 5);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, field: u64, value: impl AsRef<[u8]>) {
        let value = value.as_ref();
        self.number(field << 3 | 2);
        self.number(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    pub(crate) fn message(&mut self, field: u64, value: &Self) {
        self.bytes(field, &value.0);
    }
}

/// A message that is made of parts of another: what is kept is borrowed until all of it is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spliced<'a> {
    parts: Vec<Cow<'a, [u8]>>,
    length: usize,
}

impl<'a> Spliced<'a> {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    fn part(&mut self, part: Cow<'a, [u8]>) {
        self.length += part.len();
        self.parts.push(part);
    }

    /// A field as it was read.
    pub(crate) fn copy(&mut self, field: &Field<'a>) {
        self.part(Cow::Borrowed(field.whole));
    }

    /// Fields that were made here.
    pub(crate) fn add(&mut self, fields: Message) {
        self.part(Cow::Owned(fields.into_bytes()));
    }

    pub(crate) fn int(&mut self, field: u64, value: i64) {
        let mut own = Message::default();
        own.int(field, value);
        self.add(own);
    }

    pub(crate) fn message(&mut self, field: u64, value: Self) {
        let mut head = Message::default();
        head.number(field << 3 | 2);
        head.number(value.length as u64);
        self.add(head);
        self.length += value.length;
        self.parts.extend(value.parts);
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.parts.concat()
    }
}

impl From<Message> for Spliced<'_> {
    fn from(message: Message) -> Self {
        let mut out = Self::default();
        out.add(message);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<u64>, WireError> {
        Fields::new(bytes).map(|field| field.map(|field| field.number)).collect()
    }

    #[test]
    fn what_is_written_is_read_back_field_by_field() {
        let mut inner = Message::default();
        inner.int(1, -1);
        inner.float(2, 1.5);
        let mut message = Message::default();
        message.message(300, &inner);
        message.bytes(4, "text");
        let bytes = message.into_bytes();
        let fields: Vec<Field<'_>> = Fields::new(&bytes).map(Result::unwrap).collect();
        assert_eq!((fields[0].number, fields[1].text()), (300, Ok("text")));
        let inner: Vec<Field<'_>> = fields[0].fields().unwrap().map(Result::unwrap).collect();
        assert_eq!((inner[0].int(), inner[1].float()), (Ok(-1), Ok(1.5)));
        assert_eq!(inner[0].float(), Err(WireError::Mismatch));
        let whole: Vec<u8> = fields.iter().flat_map(|field| field.whole).copied().collect();
        assert_eq!(whole, bytes);
    }

    #[test]
    fn a_length_beyond_the_message_is_an_error_and_allocates_nothing() {
        // Field 1, length 2^60.
        let bytes = [0x0a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10];
        assert_eq!(read(&bytes), Err(WireError::Truncated));
        assert_eq!(read(&[0x08]), Err(WireError::Truncated));
        assert_eq!(read(&[0x0d, 0, 0]), Err(WireError::Truncated));
        assert_eq!(read(&[0x08, 0x80]), Err(WireError::Truncated));
        assert_eq!(read(&[0xff; 12]), Err(WireError::Number));
        assert_eq!(read(&[0x0b]), Err(WireError::Kind), "groups are gone from protobuf");
        assert_eq!(read(&[0x00, 0x00]), Err(WireError::Kind), "there is no field 0");
    }

    #[test]
    fn packed_and_single_numbers_are_the_same_list() {
        let mut message = Message::default();
        message.int(1, 5);
        message.bytes(1, [6, 0x80, 1]);
        let bytes = message.into_bytes();
        let mut all = Vec::new();
        for field in Fields::new(&bytes) {
            field.unwrap().ints(|number| all.push(number)).unwrap();
        }
        assert_eq!(all, [5, 6, 128]);
    }
}
