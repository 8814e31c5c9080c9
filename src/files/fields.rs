//! The fields a column can carry, and the headers by which each is known.

use crate::domain::words;

words! {
    /// What a column can carry.
    "field" Field {
        /// Needed.
        PermitNumber = "permit_number",
        /// Needed, or `--permit-type`.
        PermitType = "permit_type",
        /// A word for [`crate::domain::permit::PermitStatus`].
        Status = "status",
        /// Needed.
        HolderName = "holder_name",
        /// One address or several.
        HolderEmail = "holder_email",
        /// BCP 47 tag.
        HolderLanguage = "holder_language",
        /// Whole, or the street alone where city, state and postcode have columns of their own.
        SiteAddress = "site_address",
        /// Free text.
        Description = "description",
        /// Date.
        IssuedOn = "issued_on",
        /// Date.
        EffectiveOn = "effective_on",
        /// Date; needed.
        ExpiresOn = "expires_on",
        /// Id in another system.
        ExternalId = "external_id",
        /// Of one further person; one address or several. It stands before that person's name and role, because
        /// columns are found in this order and those two are looked for only when it was found.
        ContactEmail = "contact_email",
        /// Of that person.
        ContactName = "contact_name",
        /// Of that person.
        ContactRole = "contact_role",
        /// All further persons, as JSON; guessed only in our own export.
        Contacts = "contacts",
    }
}

impl Field {
    /// The fields that hold dates.
    pub(super) const DATES: [Self; 3] = [Self::IssuedOn, Self::EffectiveOn, Self::ExpiresOn];

    /// Squashed headers that mean this field, the surest first; the field's own name goes before them.
    pub(super) fn names(self) -> std::str::SplitAsciiWhitespace<'static> {
        let names = match self {
            Self::PermitNumber => {
                "permitnum permitno permitnr permit licensenumber licencenumber licensenum licenseno \
                 licenceno licno licnum licnumber license licence lic recordnumber recordnum \
                 casenumber certificatenumber number no"
            }
            Self::PermitType => {
                "permittypename permittypedesc licensedescription licencedescription licensetype licencetype \
                 lictype recordtype permittypemapped permitcategory type category"
            }
            Self::Status => {
                "permitstatus statuscurrent currentstatus licensestatus licencestatus licstatus recordstatus \
                 statuscurrentmapped"
            }
            Self::HolderName => {
                "holder permitholder permitholdername legalname licensee licenseename permittee permitteename \
                 licenseholder licenceholder applicantname applicant ownername owner businessname companyname \
                 company name customername customerfullname customer clientname client contractorcompanyname \
                 contractorfullname"
            }
            Self::HolderEmail => {
                "holderemailaddress permitholderemail licenseeemail permitteeemail applicantemail owneremail \
                 businessemail customeremail customeremailaddress clientemail emailaddress email emails mail \
                 contactemail contactemailaddress \
                 contractoremail"
            }
            Self::HolderLanguage => "language preferredlanguage lang",
            Self::SiteAddress => {
                "address originaladdress1 originaladdress address1 addressline1 streetaddress premisesaddress \
                 locationaddress propertyaddress projectaddress location"
            }
            Self::Description => "permitdescription workdescription projectdescription scopeofwork",
            Self::IssuedOn => "issueddate dateissued issuedate issuedt issueon dateofissue issued",
            Self::EffectiveOn => {
                "licensetermstartdate licencetermstartdate termstartdate effectivedate dateeffective \
                 effectivefrom startdate termstart validfrom effective"
            }
            Self::ExpiresOn => {
                "expiresdate licensetermexpirationdate licencetermexpirationdate termexpirationdate \
                 expirationdate expirydate expiredate expdate expirationdt expirydt expdt dateexpires dateofexpiry \
                 expireson expiration expiry expires expire exp \
                 validuntil validto validthrough termend enddate"
            }
            Self::ExternalId => "externalreference foreignid sourceid",
            Self::ContactName => "contact contactperson",
            Self::ContactEmail => "contactemailaddress",
            Self::ContactRole => "contacttype",
            Self::Contacts => "",
        };
        names.split_ascii_whitespace()
    }
}

/// Headers of what follows the street in an address; each group one part.
pub(super) const AFTER_STREET: [&[&str]; 4] = [
    &["address2", "originaladdress2", "addressline2", "unit"],
    &["city", "originalcity", "sitecity", "town"],
    &["state", "originalstate", "sitestate"],
    &["zip", "zipcode", "originalzip", "sitezip", "postcode", "postalcode"],
];
