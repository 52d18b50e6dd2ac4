//! Conflicts over unique values: finds which value a unique index refused, and which record holds it. Called by `upsert`.

use std::collections::HashMap;

use sea_orm::{DbBackend, EntityTrait, IntoActiveModel};

use crate::{
    domain::ndjson_records::{Line, RecordKind},
    store::{
        Error, Result,
        import::{
            At, Import, ImportFault, ImportResult,
            bulk_statements::{self, Bulk},
            table, text,
        },
        row_decoding::Cells,
    },
};

/// A value for a unique index, and the record that contains it.
pub(super) struct UniqueValue {
    line: u64,
    id: String,
    key: Vec<String>,
}

/// The values of some records for one unique index.
pub(super) struct UniqueValues {
    pub property: &'static str,
    pub columns: &'static str,
    /// The condition of a partial index, beginning with ` AND `; empty for a full index.
    pub only: &'static str,
    /// The beginning of the error message.
    pub rule: &'static str,
    pub claims: Vec<UniqueValue>,
}

impl UniqueValues {
    /// Collects values for a full index. `value` returns the id of a record and its value, or `None` if the record has no value.
    pub fn new<R>(
        property: &'static str,
        columns: &'static str,
        lines: &[Line<R>],
        mut value: impl FnMut(&R) -> Option<(&str, Vec<String>)>,
    ) -> Self {
        let claims = lines.iter().filter_map(|line| {
            let (id, key) = value(&line.record)?;
            Some(UniqueValue { line: line.number, id: id.to_owned(), key })
        });
        Self { property, columns, only: "", rule: "", claims: claims.collect() }
    }
}

impl Import {
    /// Writes rows as [`Import::put_rows`] does, into a table with unique indexes. The conflicting value is searched for only after an
    /// index has refused a row: a search before would cost a look-up for every row of every import.
    pub(super) async fn put_claimed<E>(
        &self,
        kind: RecordKind,
        models: impl Iterator<Item = impl IntoActiveModel<E::ActiveModel>>,
        claims: impl IntoIterator<Item = UniqueValues>,
    ) -> ImportResult
    where
        E: EntityTrait,
        E::ActiveModel: Send,
    {
        let claims: Vec<UniqueValues> = claims.into_iter().filter(|claims| !claims.claims.is_empty()).collect();
        // After a statement has failed, PostgreSQL refuses all statements until the transaction returns to a savepoint.
        let saves = self.way.backend() == DbBackend::Postgres && !claims.is_empty();
        if saves {
            self.run("SAVEPOINT claimed", []).await?;
        }
        let refused = match self.put_rows::<E>(kind, models).await {
            Ok(()) if saves => return self.run("RELEASE SAVEPOINT claimed", []).await.map_err(Into::into),
            Ok(()) => return Ok(()),
            Err(Error::Unique(text)) => text,
            Err(error) => return Err(error.into()),
        };
        if saves {
            self.run("ROLLBACK TO SAVEPOINT claimed", []).await?;
        }
        for claims in claims {
            self.claim(kind, claims).await?;
        }
        Err(Error::Unique(refused).into())
    }

    /// Checks the values of a batch for one unique index. Returns a fault if two records of the batch have the same value, or if a stored
    /// record that is not in the batch has a value of the batch. Stored records that the import replaces are no conflict, since they have
    /// released their unique values before. Rows of the batch itself may already be stored; they are no conflict, either.
    async fn claim(&self, kind: RecordKind, UniqueValues { property, columns, only, rule, claims }: UniqueValues) -> ImportResult {
        let mut owners: HashMap<&[String], &UniqueValue> = HashMap::with_capacity(claims.len());
        let fault = |claim: &UniqueValue, holder: &str| ImportFault {
            at: At::Line { number: claim.line, kind },
            property,
            reason: format!(
                "{rule}`{}` belongs to the {} `{holder}` already",
                claim.key.last().map(String::as_str).unwrap_or_default(),
                kind.name()
            ),
        };
        for claim in &claims {
            if let Some(other) = owners.insert(&claim.key, claim) {
                return Err(fault(claim, &other.id).into());
            }
        }
        let keys = claims.iter().map(|claim| claim.key.iter().map(|part| part.as_str().into()).collect());
        let Bulk { sql, runs } = bulk_statements::rows(self.way.backend(), keys.collect());
        let sql = format!("SELECT id, {columns} FROM {} WHERE store_id = ? AND ({columns}) IN ({sql}){only}", table(kind));
        let width = claims.first().map_or(0, |claim| claim.key.len());
        let decode = |cells: &mut Cells<'_>| Ok((text(cells)?, (0..width).map(|_| text(cells)).collect::<Result<Vec<_>>>()?));
        let held = self.of_store(&sql, runs, decode).await?;
        let taken = held.iter().find_map(|(id, key)| owners.get(key.as_slice()).filter(|claim| claim.id != *id).map(|claim| (claim, id)));
        taken.map_or(Ok(()), |(claim, id)| Err(fault(claim, id).into()))
    }
}
