//! `import`: permits from a file, all of its rows or none.

use std::{num::NonZeroU64, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, ensure};
use clap::Args;
use uuid::Uuid;

use super::{errors_file::ErrorsFile, print_json, progress::Meter, say};
use crate::{
    app::{App, Database},
    config::Config,
    domain::mapping::{MappingName, MappingWords},
    files::{
        ColumnChoice, DateFormat, ImportOptions, ImportRules, Input, OptionError, StatusChoice, export::rejected_rows,
        import, saved,
    },
    store::{Moment, changes::COMMAND},
};

const MAP: &str = "Take a field from the column with this header, such as expires_on=\"VALID TO\"; fields are permit_number, \
                   permit_type, status, holder_name, holder_email, holder_language, site_address, description, \
                   issued_on, effective_on, expires_on, external_id, contact_email, contact_name, contact_role and \
                   contacts";

#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one option of the command line")]
pub struct Arguments {
    /// The file: csv, tsv, xlsx or ods
    file: PathBuf,
    /// Names a column.
    #[arg(long, value_name = "FIELD=COLUMN", help = MAP)]
    map: Vec<ColumnChoice>,
    /// Read a status word of the file as one of ours
    #[arg(long, value_name = "FROM=TO")]
    status: Vec<StatusChoice>,
    /// The type of every permit of the file
    #[arg(long, value_name = "TYPE")]
    permit_type: Option<String>,
    /// How dates are written, such as %d.%m.%Y; years of two digits are only read by one such as %m/%d/%y
    #[arg(long, value_name = "FMT")]
    date_format: Option<DateFormat>,
    /// The sheet of a workbook that has several
    #[arg(long, value_name = "NAME")]
    sheet: Option<String>,
    /// The row in which the names of the columns stand
    #[arg(long, value_name = "N")]
    header_row: Option<NonZeroU64>,
    /// Read it as it was saved under this name; what is given besides goes before that
    #[arg(long, value_name = "NAME")]
    mapping: Option<MappingName>,
    /// Save how it is read under this name, once it could be read; one of the same name is replaced
    #[arg(long, value_name = "NAME", conflicts_with = "dry_run")]
    save_mapping: Option<MappingName>,
    /// Tell new permits what is due already, and confirm renewals
    #[arg(long)]
    catch_up: bool,
    /// Apply the rows that are right although others are not; but none of a permit of which a row is wrong
    #[arg(long)]
    keep_good_rows: bool,
    /// Say which active permits, of the types that the file has, it does not name; they are not changed
    #[arg(long)]
    complete: bool,
    /// Write the rejected rows to this file, each with what is wrong in a last column
    #[arg(long, value_name = "FILE")]
    errors: Option<PathBuf>,
    /// Say what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// The options, checked for contradictions.
    pub fn options(&self) -> Result<ImportOptions, OptionError> {
        let (map, status) = (self.map.clone(), self.status.clone());
        let kind = self.permit_type.clone();
        let options = ImportOptions::new(map, status, kind, self.date_format.clone(), self.keep_good_rows)?
            .of_sheet(self.sheet.clone())
            .of_header_row(self.header_row.map(NonZeroU64::get));
        if self.save_mapping.is_some() && self.mapping.is_none() && options.words() == MappingWords::default() {
            return Err(OptionError::NothingToSave);
        }
        Ok(options)
    }
}

pub async fn run(arguments: Arguments, config: Config, database: &Database) -> Result<ExitCode> {
    let mut options = arguments.options()?;
    // Nothing may be imported whose rejected rows have no place.
    let errors = arguments.errors.as_deref().map(|path| ErrorsFile::open(path, &arguments.file)).transpose()?;
    let app = App::open(config, database).await?;
    if let Some(name) = &arguments.mapping {
        options = saved::with_saved(&mut *app.pool.acquire().await?, options, name).await?;
    }
    let rules = ImportRules {
        moment: app.moment(None).await?,
        zone: app.config.time_zone,
        window: app.config.send_window.as_ref(),
        claim_limit: app.config.scan_claim_limit.map_or(0, u64::from),
        catch_up: arguments.catch_up,
        complete: arguments.complete,
        dry_run: arguments.dry_run,
        by: COMMAND,
    };
    let meter = Meter::new();
    let file = Input::Path(arguments.file);
    let report =
        meter.beside(Box::pin(import(&database.direct_url, file, &options, &rules, |at| meter.show(at)))).await?;
    // What was done is told before anything else can go wrong.
    if arguments.json {
        print_json(&report)?;
    } else {
        say!("{}", report.to_string().trim_end());
    }
    let saved = match &arguments.save_mapping {
        Some(name) => save_mapping(&app, name, &options, rules.moment).await,
        None => Ok(()),
    };
    let written = match errors.zip(report.id) {
        Some((file, id)) => write_rejected(&app, id, file).await,
        None => Ok(()),
    };
    let wrong: Vec<String> =
        [saved, written].into_iter().filter_map(|done| Some(format!("{:#}", done.err()?))).collect();
    ensure!(wrong.is_empty(), "the report tells what was done, but {}", wrong.join("; "));
    Ok(if report.was_applied() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn save_mapping(app: &App<'_>, name: &MappingName, options: &ImportOptions, moment: Moment) -> Result<()> {
    let save = async { saved::save(&mut *app.pool.acquire().await?, name, options, COMMAND, moment).await };
    save.await.context("--save-mapping: the mapping is not saved")
}

async fn write_rejected(app: &App<'_>, import: Uuid, file: ErrorsFile) -> Result<()> {
    file.write(rejected_rows(app.pool.clone(), import).await.context("--errors")?).await
}
