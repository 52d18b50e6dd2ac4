//! Write probe: the row that `/readyz` updates to prove that the database accepts writes. All processes share it.

crate::migration!(
    "m0013_write_probe",
    tables: ["write_probes"],
    r#"
CREATE TABLE write_probes (
    id BIGINT NOT NULL PRIMARY KEY,
    written_at BIGINT NOT NULL
);
"#
);
