//! Compares two OpenAPI documents and tells what changed, where, and whom it breaks.
//!
//! Called by the command line (`contract diff`), by the tests that hold the committed documents to the released ones, and
//! by the page at `/docs/changes`. Knows nothing of the rest of the crate, and neither files nor network.
//!
//! Guaranteed: two equal documents have no difference; comparing the other way round finds the mirror of every change and
//! nothing else; no document makes it fail, however it is broken. What differs outside of descriptions, titles, summaries,
//! examples and comments is told, if only as something that no rule explains. Two things are not told one by one: how
//! `allOf` spreads over its parts what it means as a whole; and what is behind a reference that one document alone can
//! follow, which is unknown. Of a type that comes or goes, the change names the keywords that go with it.
//!
//! - `read` turns text into a document, `refs` follows references, `flat` makes one schema of `allOf`.
//! - `compare` is the top of the walk; `operations`, `security`, `parameters`, `contents`, `schema`, `reach`, `objects`,
//!   `keywords`, `variants` and `opaque` its parts.
//! - `rules` is the table that says what is breaking; `report` what was found, `notes` what people say about it.
//! - `layout` puts a report in order for people; `print` and `page` show it: as text, Markdown and HTML.
//!
//! Decided: written for this, since what exists either needs another runtime, reads only OpenAPI 3.0, or classifies without
//! a mirror and passes over what it does not know.

mod compare;
mod contents;
mod flat;
mod keywords;
mod layout;
mod notes;
mod objects;
mod opaque;
mod operations;
mod page;
mod parameters;
mod print;
mod reach;
mod read;
mod refs;
mod report;
mod rules;
mod schema;
mod security;
mod values;
mod variants;
mod walk;

pub use compare::diff;
pub use notes::{Gaps, Note, Notes};
pub use page::STYLE;
pub use read::{Document, Unreadable};
pub use report::{Called, Change, Report, Shared, Summary, Title, Unshown};
pub use rules::{ALL, Class, Direction, Rule};

#[cfg(test)]
mod tests;
