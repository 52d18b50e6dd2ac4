//! Several statements in one round trip.
//!
//! PostgreSQL runs data-modifying statements within a `WITH`, each on the state before all of them, in an order of its own.
//! What a write leaves behind (its message, counters, events, change log) goes out so: each round trip saved is a switch of
//! processes on both sides.

use super::{Param, Sql};

impl Sql {
    /// One statement that does what all of these do, on PostgreSQL. Each of them begins with the store, which stays `$1`, and
    /// none sees what another does.
    pub fn together(statements: Vec<Self>) -> Option<Self> {
        let mut statements = statements.into_iter();
        let last = statements.next_back()?;
        let mut whole = Self { text: String::new(), values: last.values[..1].to_vec(), ..last };
        let mut number = 0;
        for part in statements {
            number += 1;
            whole.push(if number == 1 { "WITH w" } else { ", w" }).push(&number.to_string()).push(" AS (");
            whole.append(part.text, part.values);
            whole.push(")");
        }
        if number > 0 {
            whole.push(" ");
        }
        whole.append(last.text, last.values);
        Some(whole)
    }

    /// Takes a text over, with its values behind those that are there. The first of both is the store.
    fn append(&mut self, text: String, values: Vec<Param>) {
        let behind = self.values.len() - 1;
        let mut parts = text.split('$');
        self.text.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            let number = part[..digits].parse().map_or(0, |number: usize| if number > 1 { number + behind } else { number });
            self.text.push('$');
            self.text.push_str(&number.to_string());
            self.text.push_str(&part[digits..]);
        }
        self.values.extend(values.into_iter().skip(1));
    }
}

#[cfg(test)]
mod tests {
    use super::{Param, Sql};
    use crate::domain::ids::StoreId;

    fn texts(sql: &Sql) -> Vec<&str> {
        sql.values.iter().map(|value| if let Param::Text(text) = value { text.as_str() } else { "?" }).collect()
    }

    #[test]
    fn statements_keep_their_values() {
        let store = StoreId::from("s".to_owned());
        let statement = |name: &str, values: &[&str]| {
            let mut sql = Sql::of(&store, &format!("INSERT INTO {name} VALUES ($1"));
            for value in values {
                sql.push(", ").text(value);
            }
            sql.push(")");
            sql
        };
        let many: Vec<String> = (0..11).map(|i| i.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let whole = Sql::together(vec![statement("a", &["x", "y"]), statement("b", &many), statement("c", &["z"])]).unwrap();
        assert_eq!(
            whole.text,
            "WITH w1 AS (INSERT INTO a VALUES ($1, $2, $3)), w2 AS (INSERT INTO b VALUES ($1, $4, $5, $6, $7, $8, $9, $10, $11, $12, \
             $13, $14)) INSERT INTO c VALUES ($1, $15)"
        );
        assert_eq!(texts(&whole), ["s", "x", "y", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "z"]);
        let alone = Sql::together(vec![statement("a", &["x"])]).unwrap();
        assert_eq!(alone.text, "INSERT INTO a VALUES ($1, $2)");
        assert_eq!(texts(&alone), ["s", "x"]);
        assert!(Sql::together(vec![]).is_none());
    }
}
