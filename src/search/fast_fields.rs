//! Column store (fast fields) of an index segment: the sort key and the id of each document.
//!
//! A UUID or a short id is stored in two numeric columns. Only longer ids are stored in a dictionary column, which is slow to read: to read
//! one id, on average half a block of other ids is decoded.
//!
//! Called by `index`, which writes the columns, and by `searcher`. Opening a column reads the header of every block, so the columns are
//! opened once per commit of the index and not for each search. Guarantee: ids are compared in their packed form (see [`pack`]), whatever
//! their storage form.

use std::sync::Arc;

use tantivy::{
    DocId, SegmentReader, TantivyDocument, TantivyError,
    columnar::{BytesColumn, ColumnValues},
    schema::{BytesOptions, Field, NumericOptions, SchemaBuilder},
};

pub const STANDING: &str = "standing";
const FORM: &str = "id_form";
const HIGH: &str = "id_high";
const LOW: &str = "id_low";
const LONG: &str = "id_long";

/// The values of the column `FORM`: the storage form of a document's id.
const UUID: u64 = 0;
const SHORT: u64 = 1;
const DICTIONARY: u64 = 2;

/// The maximum length of a short id in bytes. A short id is stored as a number of 128 bits, and the last byte of the number is the length
/// of the id.
const SHORT_MAX: usize = 15;

/// The first byte of a packed id: `OF_UUID` for a UUID, `OF_TEXT` for any other id.
const OF_UUID: u8 = 0;
const OF_TEXT: u8 = 1;

/// Packs an id: returns the bytes by which ids are compared. The first byte is a type byte. For a UUID that is written in lower case with
/// hyphens, the 16 bytes of the UUID follow; for any other id, its text follows.
pub fn pack(id: &str) -> Vec<u8> {
    match uuid::Uuid::try_parse(id) {
        Ok(uuid) if uuid.hyphenated().to_string() == id => [&[OF_UUID][..], uuid.as_bytes()].concat(),
        _ => [&[OF_TEXT][..], id.as_bytes()].concat(),
    }
}

/// Unpacks a packed id; `None` if the bytes are damaged.
pub fn unpack(packed: &[u8]) -> Option<String> {
    match packed.split_first()? {
        (&OF_UUID, uuid) => Some(uuid::Uuid::from_slice(uuid).ok()?.hyphenated().to_string()),
        (_, text) => String::from_utf8(text.to_vec()).ok(),
    }
}

/// Returns the storage form and the number of a packed id; `None` if the id is too long for a number.
fn number(packed: &[u8]) -> Option<(u64, u128)> {
    match packed.split_first()? {
        (&OF_UUID, uuid) => Some((UUID, u128::from_be_bytes(uuid.try_into().ok()?))),
        (_, text) if text.len() <= SHORT_MAX => {
            let mut bytes = [0; SHORT_MAX + 1];
            bytes[..text.len()].copy_from_slice(text);
            bytes[SHORT_MAX] = u8::try_from(text.len()).ok()?;
            Some((SHORT, u128::from_be_bytes(bytes)))
        }
        _ => None,
    }
}

/// The columns of the index schema that together store the id of a document.
#[derive(Clone, Copy, Debug)]
pub struct IdFields {
    form: Field,
    high: Field,
    low: Field,
    long: Field,
}

impl IdFields {
    pub fn add(schema: &mut SchemaBuilder) -> Self {
        let mut number = |name| schema.add_u64_field(name, NumericOptions::default().set_fast());
        let (form, high, low) = (number(FORM), number(HIGH), number(LOW));
        Self { form, high, low, long: schema.add_bytes_field(LONG, BytesOptions::default().set_fast()) }
    }

    pub fn write(&self, document: &mut TantivyDocument, id: &str) {
        let packed = pack(id);
        let (form, number) = number(&packed).unwrap_or((DICTIONARY, 0));
        document.add_u64(self.form, form);
        document.add_u64(self.high, (number >> u64::BITS) as u64);
        document.add_u64(self.low, number as u64);
        if form == DICTIONARY {
            document.add_bytes(self.long, &packed);
        }
    }
}

/// The open columns of a segment.
pub struct SegmentColumns {
    pub standings: Arc<dyn ColumnValues<u64>>,
    form: Arc<dyn ColumnValues<u64>>,
    high: Arc<dyn ColumnValues<u64>>,
    low: Arc<dyn ColumnValues<u64>>,
    long: Option<BytesColumn>,
}

impl SegmentColumns {
    pub fn open(segment: &SegmentReader) -> Result<Self, TantivyError> {
        let fields = segment.fast_fields();
        let number = |name| fields.column_first_or_default(name);
        Ok(Self { standings: number(STANDING)?, form: number(FORM)?, high: number(HIGH)?, low: number(LOW)?, long: fields.bytes(LONG)? })
    }

    /// Reads the packed id of a document.
    pub fn id(&self, document: DocId) -> Result<Vec<u8>, TantivyError> {
        let damaged = || TantivyError::InternalError("an id cannot be read".to_owned());
        let form = self.form.get_val(document);
        if form == DICTIONARY {
            let column = self.long.as_ref().ok_or_else(damaged)?;
            let mut packed = Vec::new();
            column.ord_to_bytes(column.ords().first(document).ok_or_else(damaged)?, &mut packed)?;
            return Ok(packed);
        }
        let mut packed = Vec::with_capacity(SHORT_MAX + 2);
        packed.push(if form == UUID { OF_UUID } else { OF_TEXT });
        packed.extend_from_slice(&self.high.get_val(document).to_be_bytes());
        packed.extend_from_slice(&self.low.get_val(document).to_be_bytes());
        if form == SHORT {
            let length = packed.pop().map_or(0, usize::from);
            packed.truncate(1 + length);
        }
        Ok(packed)
    }
}

#[cfg(test)]
mod tests {
    use tantivy::schema::Schema;

    use super::*;

    const IDS: [&str; 8] = [
        "018f2c7e-5a3b-7c1d-9e2f-0123456789ab",
        "018F2C7E-5A3B-7C1D-9E2F-0123456789AB",
        "00000000-0000-0000-0000-000000000000",
        "m-1",
        "",
        "ไทย",
        "exactly-fifteen",
        "sixteen-and-more",
    ];

    #[test]
    fn packed_ids_are_unpacked_unchanged() {
        for id in IDS {
            assert_eq!(unpack(&pack(id)).as_deref(), Some(id));
        }
        assert_eq!(pack(IDS[0]).len(), 17);
        assert_eq!(IDS.map(|id| number(&pack(id)).is_some()), [true, false, true, true, true, true, true, false]);
    }

    #[test]
    fn ids_are_read_back_unchanged_from_index_columns() {
        let mut schema = Schema::builder();
        let standing = schema.add_u64_field(STANDING, NumericOptions::default().set_fast());
        let fields = IdFields::add(&mut schema);
        let index = tantivy::Index::create_in_ram(schema.build());
        let mut writer = index.writer_with_num_threads(1, 15_000_000).unwrap();
        for (id, at) in IDS.iter().zip(0..) {
            let mut document = TantivyDocument::new();
            document.add_u64(standing, at);
            fields.write(&mut document, id);
            writer.add_document(document).unwrap();
        }
        writer.commit().unwrap();
        let searcher = index.reader().unwrap().searcher();
        let columns = SegmentColumns::open(searcher.segment_reader(0)).unwrap();
        for document in 0..8 {
            let id = IDS[columns.standings.get_val(document) as usize];
            assert_eq!(columns.id(document).unwrap(), pack(id), "{id}");
        }
    }
}
