//! Names of threads: those of WhatsApp are called by the phone in E.164, however the file spells it. Called by `derive`.
//!
//! Once all conversations are there, since a file may hold several that spell one phone: an export of a store that took such
//! names as they came, which has to be taken back. The first is called by the phone; the others keep their names.

use std::collections::HashSet;

use crate::{
    domain::{
        receive::thread_name,
        records::{Conversation, Line},
        store::WHATSAPP,
    },
    store::{
        Result,
        import::{
            Import,
            bulk::{self, Bulk},
            check::texts,
        },
    },
};

/// Conversations that are read at once.
const CHUNK: usize = if cfg!(test) { 2 } else { 5000 };

/// Whether some of these conversations are to be called by another name.
pub(super) fn any_other(lines: &[Line<Conversation>]) -> bool {
    lines.iter().any(|line| other_name(line.record.channel.as_str(), &line.record.reference_id).is_some())
}

/// What a thread is called, where that is another name than this one. A name that cannot be one of its channel stays.
fn other_name(channel: &str, reference_id: &str) -> Option<String> {
    if channel == WHATSAPP { thread_name(channel, reference_id).filter(|name| name != reference_id) } else { None }
}

impl Import {
    pub(super) async fn name_threads(&self) -> Result<()> {
        if !self.misnamed {
            return Ok(());
        }
        let sql = format!(
            "SELECT c.id, c.account_id, c.reference_id FROM import_touched t CROSS JOIN conversations c WHERE c.store_id = ? AND c.id = t.id \
             AND c.channel = '{WHATSAPP}' AND t.id > ? AND c.id > ? ORDER BY t.id LIMIT {CHUNK}"
        );
        let mut after = String::new();
        loop {
            let threads: Vec<[String; 3]> =
                self.rows(&sql, [self.store.as_str().into(), after.as_str().into(), after.as_str().into()], texts).await?;
            let Some([last, _, _]) = threads.last() else { return Ok(()) };
            after.clone_from(last);
            let other = threads.into_iter().filter_map(|[id, account, name]| Some((id, [account, other_name(WHATSAPP, &name)?])));
            self.rename(other.collect()).await?;
        }
    }

    /// Calls conversations by these names, each of an account, as far as they are free.
    async fn rename(&self, others: Vec<(String, [String; 2])>) -> Result<()> {
        if others.is_empty() {
            return Ok(());
        }
        let keys = others.iter().map(|(_, key)| key.iter().map(|part| part.as_str().into()).collect());
        let Bulk { sql, runs } = bulk::rows(self.backend, keys.collect());
        let sql =
            format!("SELECT account_id, reference_id FROM conversations WHERE store_id = ? AND (account_id, reference_id) IN ({sql})");
        let mut taken: HashSet<[String; 2]> = self.of_store(&sql, runs, texts).await?.into_iter().collect();
        let free = others.into_iter().filter(|(_, key)| taken.insert(key.clone()));
        let rows: Vec<_> = free.map(|(id, [_, name])| vec![name.into(), id.into()]).collect();
        let Bulk { sql, runs } = bulk::update(self.backend, "conversations", &["reference_id"], rows);
        self.way.run(&sql, &[], runs, &[self.store.as_str().into()]).await
    }
}
