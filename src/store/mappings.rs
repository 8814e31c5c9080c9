//! Mappings that people saved: how files of one kind are read.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection, PgExecutor};
use uuid::Uuid;

use super::{
    Result, StoreError,
    office_log::{self, Deed, Subject},
};
use crate::domain::mapping::MappingName;

/// Most mappings that are kept.
pub const MAPPINGS_MAX: i64 = 200;

/// A saved mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedMapping {
    /// UUID version 7.
    pub id: Uuid,
    /// What people call it.
    pub name: String,
    /// What was chosen; see [`crate::domain::mapping::MappingWords`].
    pub words: Value,
    /// Who saved it last.
    pub saved_by: String,
    /// Business time.
    pub saved_at: DateTime<Utc>,
}

/// The mapping of this name, if there is one.
pub async fn find_mapping(executor: impl PgExecutor<'_>, name: &MappingName) -> Result<Option<SavedMapping>> {
    let found = sqlx::query_as!(
        SavedMapping,
        "SELECT id, name, words, saved_by, saved_at FROM import_mappings WHERE name_key = $1",
        name.key(),
    );
    Ok(found.fetch_optional(executor).await?)
}

/// One mapping.
pub async fn get_mapping(executor: impl PgExecutor<'_>, id: Uuid) -> Result<SavedMapping> {
    let found = sqlx::query_as!(
        SavedMapping,
        "SELECT id, name, words, saved_by, saved_at FROM import_mappings WHERE id = $1",
        id,
    );
    found.fetch_optional(executor).await?.ok_or(StoreError::NotFound("saved mapping"))
}

/// All of them, by name.
pub async fn list_mappings(executor: impl PgExecutor<'_>) -> Result<Vec<SavedMapping>> {
    let all = sqlx::query_as!(
        SavedMapping,
        "SELECT id, name, words, saved_by, saved_at FROM import_mappings ORDER BY name_key"
    );
    Ok(all.fetch_all(executor).await?)
}

/// Saves a mapping; one of the same name is replaced.
pub async fn save_mapping(
    connection: &mut PgConnection,
    name: &MappingName,
    words: &Value,
    by: &str,
    now: DateTime<Utc>,
) -> Result<()> {
    let mut work = connection.begin().await?;
    // Two that save at once are counted one after the other.
    sqlx::query!("LOCK TABLE import_mappings IN SHARE ROW EXCLUSIVE MODE").execute(&mut *work).await?;
    let before = find_mapping(&mut *work, name).await?;
    let count = sqlx::query_scalar!(r#"SELECT count(*) AS "count!" FROM import_mappings"#);
    if before.is_none() && count.fetch_one(&mut *work).await? >= MAPPINGS_MAX {
        let why = format!("{MAPPINGS_MAX} mappings are saved already; remove one that nobody needs");
        return Err(StoreError::wrong_state("full", &why));
    }
    let id = sqlx::query_scalar!(
        "INSERT INTO import_mappings (id, name, name_key, words, saved_by, saved_at) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (name_key) DO UPDATE
         SET name = excluded.name, words = excluded.words, saved_by = excluded.saved_by, saved_at = excluded.saved_at
         RETURNING id",
        Uuid::now_v7(),
        name.as_str(),
        name.key(),
        words,
        by,
        now,
    )
    .fetch_one(&mut *work)
    .await?;
    let deed = Deed {
        by,
        action: "saved",
        subject: Subject::ImportMapping,
        subject_id: Some(id),
        label: name.as_str(),
        before: before.map(|before| in_short(&before.words)),
        after: Some(in_short(words)),
    };
    office_log::record(&mut *work, deed, now).await?;
    Ok(work.commit().await?)
}

/// Removes a mapping; says what it was called.
pub async fn remove_mapping(connection: &mut PgConnection, id: Uuid, by: &str, now: DateTime<Utc>) -> Result<String> {
    let mut work = connection.begin().await?;
    let gone = get_mapping(&mut *work, id).await?;
    sqlx::query!("DELETE FROM import_mappings WHERE id = $1", id).execute(&mut *work).await?;
    let deed = Deed {
        by,
        action: "removed",
        subject: Subject::ImportMapping,
        subject_id: Some(id),
        label: &gone.name,
        before: Some(in_short(&gone.words)),
        after: None,
    };
    office_log::record(&mut *work, deed, now).await?;
    work.commit().await?;
    Ok(gone.name)
}

/// For the audit: each choice one line, those that are not made left out.
fn in_short(words: &Value) -> Value {
    let fields = words.as_object().into_iter().flatten().filter_map(|(name, value)| match value {
        Value::Array(list) if list.is_empty() => None,
        Value::Array(list) => {
            let texts: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            Some((name.replace('_', " "), json!(texts.join(", "))))
        }
        Value::Null => None,
        other => Some((name.replace('_', " "), other.clone())),
    });
    Value::Object(fields.collect())
}
