//! Imports and exports over HTTP: the same code as the commands', in the words of query parameters.

use std::path::PathBuf;
use std::sync::Arc;

use chrono::NaiveDate;
use chrono_tz::Tz;
use futures_util::future::BoxFuture;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    clock::Clock,
    domain::{
        calendar::day_in,
        export::ExportShape,
        mapping::{MappingName, MappingNameError, MappingWords},
        window::SendWindow,
    },
    files::{
        ImportError, ImportOptions, ImportRules, Input, OptionError, Surface, export, import,
        look::look,
        saved::{self, SavedError},
    },
    store::{Moment, PgPool, StoreError, clock::database_now, lists::permits::PermitFilter},
    web::api::files::{Chunks, Files, ImportRefused, ImportWords, Uploaded},
};

/// What imports and exports of this process go by.
#[derive(Debug)]
pub struct OfficeFiles {
    /// Leads to the database directly.
    pub direct_url: String,
    /// For short questions.
    pub pool: PgPool,
    /// Business time.
    pub clock: Arc<dyn Clock>,
    /// The office's zone.
    pub zone: Tz,
    /// When mail may go.
    pub window: Option<SendWindow>,
    /// More pending notices than this at once are held; 0 for no limit.
    pub claim_limit: u64,
}

impl OfficeFiles {
    async fn moment(&self) -> Result<Moment, StoreError> {
        let now = self.clock.business(database_now(&self.pool).await?);
        Ok(Moment { now, today: day_in(now, self.zone) })
    }

    async fn import_upload(&self, upload: Uploaded, words: &ImportWords, by: &str) -> Result<Value, ImportRefused> {
        let options = self.options(words).await?;
        let moment = self.moment().await.map_err(|error| refused(error.into()))?;
        let rules = ImportRules {
            moment,
            zone: self.zone,
            window: self.window.as_ref(),
            claim_limit: self.claim_limit,
            catch_up: words.catch_up,
            complete: words.complete,
            dry_run: words.dry_run,
            by,
        };
        let input = Input::Open(upload.file, PathBuf::from(upload.name));
        let report = import(&self.direct_url, input, &options, &rules, |_| {}).await.map_err(refused)?;
        Ok(serde_json::to_value(&report).unwrap_or_default())
    }

    /// The options of an import, with those of the saved mapping that they name.
    async fn options(&self, words: &ImportWords) -> Result<ImportOptions, ImportRefused> {
        let options = options(words)?;
        let Some(name) = &words.mapping else { return Ok(options) };
        let name = name_of(name, "mapping")?;
        let mut connection = self.pool.acquire().await.map_err(|error| refused(StoreError::from(error).into()))?;
        saved::with_saved(&mut connection, options, &name).await.map_err(|error| match error {
            SavedError::Store(error) => refused(error.into()),
            other => ImportRefused::Option { parameter: "mapping".to_owned(), why: other.told(Surface::Api) },
        })
    }

    async fn save(&self, name: &str, words: &ImportWords, by: &str) -> Result<(), ImportRefused> {
        let name = name_of(name, "save_mapping")?;
        let options = self.options(words).await?;
        let refuse = |why: String| ImportRefused::Option { parameter: "save_mapping".to_owned(), why };
        if options.words() == MappingWords::default() {
            return Err(refuse(
                "there is nothing to save, because everything is guessed; choose something first".to_owned(),
            ));
        }
        let moment = self.moment().await.map_err(|error| refused(error.into()))?;
        let mut connection = self.pool.acquire().await.map_err(|error| refused(StoreError::from(error).into()))?;
        match saved::save(&mut connection, &name, &options, by, moment).await {
            Err(StoreError::WrongState { why, .. }) => Err(refuse(why)),
            done => done.map_err(|error| refused(error.into())),
        }
    }
}

fn name_of(text: &str, parameter: &str) -> Result<MappingName, ImportRefused> {
    text.parse().map_err(|error: MappingNameError| ImportRefused::Option {
        parameter: parameter.to_owned(),
        why: error.to_string(),
    })
}

impl Files for OfficeFiles {
    fn check<'a>(&'a self, words: &'a ImportWords) -> BoxFuture<'a, Result<(), ImportRefused>> {
        Box::pin(async { self.options(words).await.map(|_| ()) })
    }

    fn save_mapping<'a>(
        &'a self,
        name: &'a str,
        words: &'a ImportWords,
        by: &'a str,
    ) -> BoxFuture<'a, Result<(), ImportRefused>> {
        Box::pin(self.save(name, words, by))
    }

    fn import<'a>(
        &'a self,
        upload: Uploaded,
        words: &'a ImportWords,
        by: &'a str,
    ) -> BoxFuture<'a, Result<Value, ImportRefused>> {
        Box::pin(self.import_upload(upload, words, by))
    }

    fn look<'a>(&'a self, upload: Uploaded, words: &'a ImportWords) -> BoxFuture<'a, Result<Value, ImportRefused>> {
        Box::pin(async move {
            let options = self.options(words).await?;
            let input = Input::Open(upload.file, PathBuf::from(upload.name));
            let looked = tokio::task::spawn_blocking(move || look(input, &options)).await;
            let look = looked.map_err(|_| ImportRefused::Fault)?.map_err(|error| refused(error.into()))?;
            Ok(serde_json::to_value(&look).unwrap_or_default())
        })
    }

    fn rejected(&self, import: Uuid) -> BoxFuture<'_, Result<Chunks, StoreError>> {
        Box::pin(export::rejected_rows(self.pool.clone(), import))
    }

    fn export(
        &self,
        filter: PermitFilter,
        shape: ExportShape,
        today: NaiveDate,
    ) -> BoxFuture<'_, Result<Chunks, StoreError>> {
        Box::pin(export::export(&self.direct_url, filter, shape, today))
    }
}

fn options(words: &ImportWords) -> Result<ImportOptions, ImportRefused> {
    let ImportWords { map, status, permit_type, date_format, keep_good_rows, .. } = words;
    let read = ImportOptions::parse(map, status, permit_type.as_deref(), date_format.as_deref(), *keep_good_rows);
    let read = read.and_then(|options| {
        options.of_sheet(words.sheet.clone()).of_header_row(words.header_row).leaving_out(&words.leave_out)
    });
    read.map_err(|error: OptionError| ImportRefused::Option {
        parameter: error.option().parameter().to_owned(),
        why: error.told(Surface::Api),
    })
}

fn refused(error: ImportError) -> ImportRefused {
    match error {
        ImportError::File(error) => {
            if let Some(code) = error.fault.code() {
                return ImportRefused::File {
                    code,
                    fact: error.fault.fact(),
                    advice: error.fault.advice(Surface::Api),
                };
            }
            tracing::error!("an upload could not be read: {}", error.fault);
            ImportRefused::Fault
        }
        ImportError::Unusable(error) | ImportError::Away(error) | ImportError::InTheWay(error) => {
            tracing::warn!("the database could not serve an import: {error}");
            ImportRefused::Busy
        }
        ImportError::Unknown(import) => ImportRefused::Unknown(import),
        // Both are in the log.
        ImportError::Refused(_) | ImportError::Broken => ImportRefused::Fault,
    }
}
