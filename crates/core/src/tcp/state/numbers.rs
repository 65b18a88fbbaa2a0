//! Values as a row of numbers, one for each primitive field, in the order in which `serde` derives them: two values of one shape have
//! their fields at the same places. A choice is a number before what it has, as is the length of a list.
//!
//! **Source.** None.
//! **Deviations.** None.

use alloc::vec::Vec;
use serde::de::value::Error;
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, Visitor};
use serde::ser::{self, Error as _, Serialize};

/// Appends a value to `numbers`.
pub(super) fn write<T: Serialize>(value: &T, numbers: &mut Vec<u64>) -> Result<(), Error> {
    value.serialize(&mut Writer(numbers))
}

/// The value that was written as `numbers`.
pub(super) fn read<T: DeserializeOwned>(numbers: &[u64]) -> Result<T, Error> {
    T::deserialize(&mut Reader(numbers))
}

struct Writer<'a>(&'a mut Vec<u64>);

impl Writer<'_> {
    #[inline]
    fn put(&mut self, number: u64) -> Result<(), Error> {
        self.0.push(number);
        Ok(())
    }
}

macro_rules! written {
    ($($name:ident: $type:ty, $value:ident => $number:expr;)*) => {
        $(#[inline]
        fn $name(self, $value: $type) -> Result<(), Error> {
            self.put($number)
        })*
    };
}

impl ser::Serializer for &mut Writer<'_> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = ser::Impossible<(), Error>;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    written!(
        serialize_bool: bool, value => u64::from(value);
        serialize_u8: u8, value => u64::from(value);
        serialize_u16: u16, value => u64::from(value);
        serialize_u32: u32, value => u64::from(value);
        serialize_u64: u64, value => value;
        serialize_i8: i8, value => value as u64;
        serialize_i16: i16, value => value as u64;
        serialize_i32: i32, value => value as u64;
        serialize_i64: i64, value => value as u64;
        serialize_char: char, value => u64::from(u32::from(value));
    );

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.put(u64::from(value.to_bits()))
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        self.put(value.to_bits())
    }

    fn serialize_str(self, _value: &str) -> Result<(), Error> {
        Err(Error::custom(NO_NUMBERS))
    }

    fn serialize_bytes(self, _value: &[u8]) -> Result<(), Error> {
        Err(Error::custom(NO_NUMBERS))
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.put(0)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        self.put(1)?;
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
    ) -> Result<(), Error> {
        self.put(u64::from(index))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.put(u64::from(index))?;
        value.serialize(self)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Self, Error> {
        self.put(length.ok_or_else(|| Error::custom(NO_NUMBERS))? as u64)?;
        Ok(self)
    }

    fn serialize_tuple(self, _length: usize) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _name: &'static str, _length: usize) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
        _length: usize,
    ) -> Result<Self, Error> {
        self.put(u64::from(index))?;
        Ok(self)
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Self::SerializeMap, Error> {
        Err(Error::custom(NO_NUMBERS))
    }

    fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
        _length: usize,
    ) -> Result<Self, Error> {
        self.put(u64::from(index))?;
        Ok(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

macro_rules! written_part {
    ($($part:ident $name:ident $($key:ident)?),*) => {
        $(impl ser::$part for &mut Writer<'_> {
            type Ok = ();
            type Error = Error;

            fn $name<T: Serialize + ?Sized>(&mut self, $($key: &'static str,)? value: &T) -> Result<(), Error> {
                value.serialize(&mut **self)
            }

            fn end(self) -> Result<(), Error> {
                Ok(())
            }
        })*
    };
}

written_part!(
    SerializeSeq serialize_element, SerializeTuple serialize_element, SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field, SerializeStruct serialize_field _key, SerializeStructVariant serialize_field _key
);

/// What is left.
struct Reader<'a>(&'a [u64]);

impl Reader<'_> {
    #[inline]
    fn next(&mut self) -> Result<u64, Error> {
        let (first, rest) = self
            .0
            .split_first()
            .ok_or_else(|| de::Error::custom(NO_NUMBERS))?;
        self.0 = rest;
        Ok(*first)
    }
}

macro_rules! read_as {
    ($($name:ident $visit:ident $type:ty),*) => {
        $(#[inline]
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit(self.next()? as $type)
        })*
    };
}

impl<'de> de::Deserializer<'de> for &mut Reader<'_> {
    type Error = Error;

    read_as!(deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16, deserialize_u32 visit_u32 u32, deserialize_u64 visit_u64 u64);
    read_as!(deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32, deserialize_i64 visit_i64 i64);

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(de::Error::custom(NO_NUMBERS))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(self.next()? != 0)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_f32(f32::from_bits(self.next()? as u32))
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_f64(f64::from_bits(self.next()?))
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let letter = char::from_u32(self.next()? as u32);
        visitor.visit_char(letter.ok_or_else(|| de::Error::custom(NO_NUMBERS))?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.next()? {
            0 => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let left = self.next()? as usize;
        visitor.visit_seq(Parts { reader: self, left })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, left: usize, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Parts { reader: self, left })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        left: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_seq(Parts { reader: self, left })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let left = fields.len();
        visitor.visit_seq(Parts { reader: self, left })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    serde::forward_to_deserialize_any! { str string bytes byte_buf map identifier ignored_any }
}

/// The parts of a list, a tuple or a structure.
struct Parts<'r, 'a> {
    reader: &'r mut Reader<'a>,
    left: usize,
}

impl<'de> de::SeqAccess<'de> for Parts<'_, '_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> de::EnumAccess<'de> for &mut Reader<'_> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        let index = self.next()? as u32;
        Ok((seed.deserialize(index.into_deserializer())?, self))
    }
}

impl<'de> de::VariantAccess<'de> for &mut Reader<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, left: usize, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Parts { reader: self, left })
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let left = fields.len();
        visitor.visit_seq(Parts { reader: self, left })
    }
}

/// Text and maps are not written, and as many numbers are read as were written.
const NO_NUMBERS: &str = "no row of numbers";

#[cfg(test)]
mod tests {
    use super::{read, write};
    use alloc::boxed::Box;
    use alloc::vec::Vec;
    use serde::{Deserialize, Serialize};

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    enum Choice {
        Nothing,
        Number(i32),
        Pair(u8, Option<Box<Choice>>),
        Named { share: f64, on: bool },
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Everything {
        choices: Vec<Choice>,
        letter: char,
        few: [u16; 3],
        nothing: (),
        largest: u64,
        small: f32,
    }

    #[test]
    fn what_is_written_is_read() {
        let value = Everything {
            choices: [
                Choice::Number(-7),
                Choice::Pair(9, Some(Box::new(Choice::Nothing))),
                Choice::Named {
                    share: -0.1,
                    on: true,
                },
            ]
            .into(),
            letter: 'ß',
            few: [1, 2, 65_535],
            nothing: (),
            largest: u64::MAX,
            small: 1.5,
        };
        let mut numbers = Vec::new();
        write(&value, &mut numbers).expect("it has neither text nor maps");
        let by_hand = [
            3,
            1,
            -7_i64 as u64,
            2,
            9,
            1,
            0,
            3,
            (-0.1_f64).to_bits(),
            1,
            0xdf,
            1,
            2,
            65_535,
            u64::MAX,
            u64::from(1.5_f32.to_bits()),
        ];
        assert_eq!(numbers, by_hand);
        assert_eq!(read::<Everything>(&numbers).expect("all of it is there"), value);
        assert!(read::<Everything>(&numbers[..numbers.len() - 1]).is_err());
        assert!(write(&"text", &mut numbers).is_err());
    }
}
