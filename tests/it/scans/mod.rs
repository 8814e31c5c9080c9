//! Scans on a real database: what they claim, when they are expected, and what each try leaves behind.

mod claiming;
mod days;
mod expected;
mod preview;
mod tries;

use crate::support::office::TestOffice;

/// Every try, the first one first: outcome, and whether it was on its own day.
async fn tries(office: &TestOffice) -> Vec<String> {
    office.text("SELECT outcome FROM scans ORDER BY started_at, id").await
}

/// Lets every scan fail, as a full disk would, until mended.
async fn break_scans(office: &TestOffice) {
    let broken = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON notices FOR EACH ROW EXECUTE FUNCTION refuse()";
    office.sql(broken).await;
}

async fn mend_scans(office: &TestOffice) {
    office.sql("DROP FUNCTION refuse() CASCADE").await;
}
