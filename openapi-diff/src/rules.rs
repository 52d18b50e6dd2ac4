//! The table of rules: each kind of change, its mirror, and its class in requests and in responses.
//!
//! A server must not accept less in requests than before, nor send more in responses than before. Names that generated clients use must
//! not be removed. A change is *unknown* if the documents alone do not decide whether it breaks clients. The mirror of a rule is the rule
//! for the same difference with the documents exchanged. Identifiers are stable, because fingerprints depend on them.

use serde::{Deserialize, Serialize};

/// How severe a change is for integrators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    Breaking,
    Unknown,
    Compatible,
}

/// The direction in which the changed value is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Values that an integrator sends, including the integrator's responses to webhooks and callbacks.
    Request,
    /// Values that are sent to an integrator, including the requests of webhooks and callbacks.
    Response,
    /// No single direction: the change concerns the operation or the document as a whole.
    Both,
    /// Values that are never sent: a `readOnly` property of a request, a `writeOnly` property of a response.
    Neither,
}

impl Direction {
    /// Returns the direction of the response to a request that is sent in this direction.
    pub fn answered(self) -> Self {
        match self {
            Self::Request => Self::Response,
            Self::Response => Self::Request,
            same => same,
        }
    }
}

/// A kind of change.
#[derive(Debug)]
pub struct Rule {
    pub id: &'static str,
    pub mirror: &'static Rule,
    pub request: Class,
    pub response: Class,
    /// The template of the text that describes a change. `{detail}`, `{old}` and `{new}` are placeholders.
    pub says: &'static str,
}

impl Rule {
    pub fn class(&self, direction: Direction) -> Class {
        match direction {
            Direction::Request => self.request,
            Direction::Response => self.response,
            Direction::Both => self.request.min(self.response),
            Direction::Neither => Class::Compatible,
        }
    }

    pub fn of(id: &str) -> Option<&'static Self> {
        ALL.iter().copied().find(|rule| rule.id == id)
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

use Class::{Breaking as B, Compatible as C, Unknown as U};

/// The columns of the table: name, identifier, name of the mirror rule, class in a request, class in a response, text.
macro_rules! rules {
    ($($name:ident $id:literal $mirror:ident $request:ident $response:ident $says:literal)*) => {
        $(pub static $name: Rule = Rule { id: $id, mirror: &$mirror, request: $request, response: $response, says: $says };)*
        pub static ALL: &[&Rule] = &[$(&$name),*];
    };
}

#[rustfmt::skip]
rules! {
    // Rules about the document as a whole.
    OPENAPI_VERSION_CHANGED   "openapi-version-changed"   OPENAPI_VERSION_CHANGED   U U "the document is written in OpenAPI {new}, was {old}"
    INFO_ADDED                "info-added"                INFO_REMOVED              C C "`info` has {detail}"
    INFO_REMOVED              "info-removed"              INFO_ADDED                C C "`info` no longer has {detail}"
    INFO_CHANGED              "info-changed"              INFO_CHANGED              C C "{detail} of `info` changed"
    TAG_ADDED                 "tag-added"                 TAG_REMOVED               C C "tag {detail} is described"
    TAG_REMOVED               "tag-removed"               TAG_ADDED                 C C "tag {detail} is no longer described"
    SERVER_ADDED              "server-added"              SERVER_REMOVED            C C "served at {detail} too"
    SERVER_REMOVED            "server-removed"            SERVER_ADDED              B B "no longer served at {detail}"
    VARIABLE_LIMITED          "server-variable-limited"       VARIABLE_FREED           B B "the variable must be one of {new}"
    VARIABLE_FREED            "server-variable-freed"         VARIABLE_LIMITED         C C "the variable may have any value, was one of {old}"
    VARIABLE_VALUE_ADDED      "server-variable-value-added"   VARIABLE_VALUE_REMOVED   C C "the variable may be {detail}"
    VARIABLE_VALUE_REMOVED    "server-variable-value-removed" VARIABLE_VALUE_ADDED     B B "the variable can no longer be {detail}"
    // A client continues to use the value that was configured for a variable, so a changed default breaks no client. The other rules about
    // variables report whether that value is still allowed.
    VARIABLE_DEFAULT_CHANGED  "server-variable-default-changed" VARIABLE_DEFAULT_CHANGED C C "the variable is {new} unless a client chooses, was {old}"
    SECURITY_DEFAULT_CHANGED  "security-default-changed"  SECURITY_DEFAULT_CHANGED  C C "the default security changed (each affected operation has a change of its own)"
    SCHEME_ADDED              "security-scheme-added"     SCHEME_REMOVED            C C "the security scheme is new"
    SCHEME_REMOVED            "security-scheme-removed"   SCHEME_ADDED              C C "the security scheme is gone"
    SCHEME_HINT_CHANGED       "security-scheme-hint-changed" SCHEME_HINT_CHANGED     C C "{detail} of the security scheme changed, which is a hint"
    SCHEME_CHANGED            "security-scheme-changed"   SCHEME_CHANGED            B B "{detail} of the security scheme changed"
    FLOW_ADDED                "flow-added"                FLOW_REMOVED              C C "the flow {detail} is offered"
    FLOW_REMOVED              "flow-removed"              FLOW_ADDED                B B "the flow {detail} is no longer offered"
    OFFER_ADDED               "flow-scope-added"          OFFER_REMOVED             C C "the scope {detail} is offered"
    OFFER_REMOVED             "flow-scope-removed"        OFFER_ADDED               B B "the scope {detail} is no longer offered"
    // Rules about components that no operation uses.
    UNUSED_ADDED              "unused-component-added"    UNUSED_REMOVED            C C "a component that nothing uses is new"
    UNUSED_REMOVED            "unused-component-removed"  UNUSED_ADDED              C C "a component that nothing used is gone"
    UNUSED_CHANGED            "unused-component-changed"  UNUSED_CHANGED            C C "a component that nothing uses changed"

    // Rules about operations. Generated clients name a method after the operationId, so a changed operationId breaks the code that calls
    // the method.
    PATH_ADDED                "path-added"                PATH_REMOVED              C C "a path without operations is new"
    PATH_REMOVED              "path-removed"              PATH_ADDED                C C "a path without operations is gone"
    OPERATION_ADDED           "operation-added"           OPERATION_REMOVED         C C "the operation is new"
    OPERATION_REMOVED         "operation-removed"         OPERATION_ADDED           B B "the operation is gone"
    OPERATION_ID_RENAMED      "operation-id-renamed"      OPERATION_ID_RENAMED      B B "`operationId` is {new}, was {old}; generated clients call it by that name"
    OPERATION_ID_ADDED        "operation-id-added"        OPERATION_ID_REMOVED      U U "`operationId` is {new}; generated clients had to make a name up"
    OPERATION_ID_REMOVED      "operation-id-removed"      OPERATION_ID_ADDED        B B "`operationId` {old} is gone; generated clients call it by that name"
    OPERATION_TAG_ADDED       "operation-tag-added"       OPERATION_TAG_REMOVED     U U "tagged {detail}; some generators group methods by tag"
    OPERATION_TAG_REMOVED     "operation-tag-removed"     OPERATION_TAG_ADDED       U U "no longer tagged {detail}; some generators group methods by tag"
    OPERATION_TAGS_REORDERED  "operation-tags-reordered"  OPERATION_TAGS_REORDERED  U U "tags stand in another order; some generators group methods by the first"
    DEPRECATED                "deprecated"                UNDEPRECATED              C C "deprecated"
    UNDEPRECATED              "undeprecated"              DEPRECATED                C C "no longer deprecated"
    // If a path parameter is renamed, requests stay the same, but generated clients use its name.
    PATH_PARAMETER_RENAMED    "path-parameter-renamed"    PATH_PARAMETER_RENAMED    B B "the path parameter is {new}, was {old}; the same on the wire, another name in generated clients"
    WEBHOOK_ADDED             "webhook-added"             WEBHOOK_REMOVED           C C "the webhook is new"
    WEBHOOK_REMOVED           "webhook-removed"           WEBHOOK_ADDED             B B "the webhook is gone"
    CALLBACK_ADDED            "callback-added"            CALLBACK_REMOVED          C C "the callback is new"
    CALLBACK_REMOVED          "callback-removed"          CALLBACK_ADDED            B B "the callback is gone"
    LINK_CHANGED              "link-changed"              LINK_CHANGED              B B "`{detail}` of the link is {new}, was {old}"
    LINK_ADDED                "link-added"                LINK_REMOVED              C C "the link is new"
    LINK_REMOVED              "link-removed"              LINK_ADDED                B B "the link is gone"

    // Rules about the credentials that an operation requires.
    SECURITY_REQUIRED         "security-required"         SECURITY_WAIVED           B C "asks for credentials: {new}"
    SECURITY_WAIVED           "security-waived"           SECURITY_REQUIRED         C B "no longer asks for credentials, which were {old}"
    ALTERNATIVE_ADDED         "security-added"            ALTERNATIVE_REMOVED       C B "takes {detail} too"
    ALTERNATIVE_REMOVED       "security-removed"          ALTERNATIVE_ADDED         B C "no longer takes {detail}"
    CREDENTIAL_ADDED          "credential-added"          CREDENTIAL_REMOVED        B C "needs {detail} too"
    CREDENTIAL_REMOVED        "credential-removed"        CREDENTIAL_ADDED          C B "no longer needs {detail}"
    SCOPE_ADDED               "scope-added"               SCOPE_REMOVED             B C "needs the scope {detail}"
    SCOPE_REMOVED             "scope-removed"             SCOPE_ADDED               C B "no longer needs the scope {detail}"

    // Rules about parameters and headers. If a parameter or header is removed, clients that read its value no longer find it, and a value
    // that clients still send is refused or ignored. So the removal is breaking in both directions.
    PARAMETER_ADDED           "parameter-optional-added"   PARAMETER_REMOVED          C C "an optional parameter is new"
    PARAMETER_REMOVED         "parameter-optional-removed" PARAMETER_ADDED            B B "the parameter is gone"
    REQUIRED_PARAMETER_ADDED  "parameter-required-added"   REQUIRED_PARAMETER_REMOVED B C "a required parameter is new"
    REQUIRED_PARAMETER_REMOVED "parameter-required-removed" REQUIRED_PARAMETER_ADDED  B B "the parameter, which was required, is gone"
    PARAMETER_BECAME_REQUIRED "parameter-became-required"  PARAMETER_BECAME_OPTIONAL  B C "the parameter is required"
    PARAMETER_BECAME_OPTIONAL "parameter-became-optional"  PARAMETER_BECAME_REQUIRED  C B "the parameter is no longer required"
    SERIALISATION_CHANGED     "serialisation-changed"      SERIALISATION_CHANGED      B B "is written {new}, was {old}"
    EMPTY_ALLOWED             "empty-value-allowed"        EMPTY_REFUSED              C B "may be empty"
    EMPTY_REFUSED             "empty-value-refused"        EMPTY_ALLOWED              B C "may no longer be empty"
    RESERVED_ALLOWED          "reserved-allowed"           RESERVED_REFUSED           C B "may hold reserved characters as they are"
    RESERVED_REFUSED          "reserved-refused"           RESERVED_ALLOWED           B C "must have reserved characters encoded"
    HEADER_ADDED              "header-optional-added"      HEADER_REMOVED             C C "the header is new"
    HEADER_REMOVED            "header-optional-removed"    HEADER_ADDED               B B "the header is gone"
    REQUIRED_HEADER_ADDED     "header-required-added"      REQUIRED_HEADER_REMOVED    B C "the header, always there, is new"
    REQUIRED_HEADER_REMOVED   "header-required-removed"    REQUIRED_HEADER_ADDED      B B "the header, always there before, is gone"
    HEADER_BECAME_REQUIRED    "header-became-required"     HEADER_BECAME_OPTIONAL     B C "the header is always there"
    HEADER_BECAME_OPTIONAL    "header-became-optional"     HEADER_BECAME_REQUIRED     C B "the header may be missing"

    // Rules about request bodies and responses.
    BODY_ADDED                "body-optional-added"        BODY_REMOVED               C C "takes a body"
    BODY_REMOVED              "body-optional-removed"      BODY_ADDED                 B B "no longer takes a body"
    REQUIRED_BODY_ADDED       "body-required-added"        REQUIRED_BODY_REMOVED      B C "needs a body"
    REQUIRED_BODY_REMOVED     "body-required-removed"      REQUIRED_BODY_ADDED        B B "no longer takes a body, which was required"
    BODY_BECAME_REQUIRED      "body-became-required"       BODY_BECAME_OPTIONAL       B C "the body is required"
    BODY_BECAME_OPTIONAL      "body-became-optional"       BODY_BECAME_REQUIRED       C B "the body is no longer required"
    // A client asks for the media type that it knows (header `Accept`), so an additional media type breaks no client.
    MEDIA_TYPE_ADDED          "media-type-added"           MEDIA_TYPE_REMOVED         C C "{detail} is new"
    MEDIA_TYPE_REMOVED        "media-type-removed"         MEDIA_TYPE_ADDED           B B "{detail} is gone"
    MEDIA_TYPE_LISTED         "media-type-listed"          MEDIA_TYPE_UNLISTED        C C "described by itself, was {detail}"
    MEDIA_TYPE_UNLISTED       "media-type-unlisted"        MEDIA_TYPE_LISTED          C C "no longer described by itself but by {detail}"
    PART_TYPE_ADDED           "part-media-type-added"      PART_TYPE_REMOVED          C B "the part may be {detail}"
    PART_TYPE_REMOVED         "part-media-type-removed"    PART_TYPE_ADDED            B C "the part can no longer be {detail}"
    // An additional success status breaks clients, because they do not expect it. An additional failure status breaks no client, because
    // clients handle failures by their range, 4xx or 5xx.
    SUCCESS_ADDED             "response-success-added"     SUCCESS_REMOVED            C B "the answer is new"
    SUCCESS_REMOVED           "response-success-removed"   SUCCESS_ADDED              B B "the answer is gone"
    RANGE_ADDED               "response-range-added"       RANGE_REMOVED              C B "all other successes of this range may be answered too"
    RANGE_REMOVED             "response-range-removed"     RANGE_ADDED                B C "no other successes of this range are answered than those that are listed"
    FAILURE_ADDED             "response-failure-added"     FAILURE_REMOVED            C C "the failure is new"
    FAILURE_REMOVED           "response-failure-removed"   FAILURE_ADDED              U C "the failure is gone"
    DEFAULT_ANSWER_ADDED      "response-default-added"     DEFAULT_ANSWER_REMOVED     C C "answers that are not listed are described"
    DEFAULT_ANSWER_REMOVED    "response-default-removed"   DEFAULT_ANSWER_ADDED       U U "answers that are not listed are no longer described"
    ANSWER_LISTED             "response-listed"            ANSWER_UNLISTED            C C "described by itself, was {detail}"
    ANSWER_UNLISTED           "response-unlisted"          ANSWER_LISTED              C C "no longer described by itself but by {detail}"

    // Rules about the values that a schema allows. To allow fewer values is breaking in a request. To allow more values is breaking in a
    // response.
    TYPE_CHANGED              "type-changed"               TYPE_CHANGED               B B "is {new}, was {old}"
    // The next four rules are about values that are written as text: in a query, a path or a header. The text of a number is also a valid
    // string. If a list is written as one parameter for each item, a single value is written like a list of one item.
    TEXT_WIDENED              "text-widened"               TEXT_NARROWED              C B "may be {new}, was {old}; the text of a value stays valid"
    TEXT_NARROWED             "text-narrowed"              TEXT_WIDENED               B C "must be {new}, was {old}"
    LIST_ALLOWED              "list-allowed"               LIST_REFUSED               C B "may be a list, was {old}; one value is a list of one"
    LIST_REFUSED              "list-refused"               LIST_ALLOWED               B C "must be {new}, was a list"
    TYPE_WIDENED              "type-widened"               TYPE_NARROWED              C B "may be {new}, was {old}"
    TYPE_NARROWED             "type-narrowed"              TYPE_WIDENED               B C "must be {new}, was {old}"
    NULL_ALLOWED              "null-allowed"               NULL_REFUSED               C B "may be null"
    NULL_REFUSED              "null-refused"               NULL_ALLOWED               B C "may no longer be null"
    FORMAT_ADDED              "format-added"               FORMAT_REMOVED             B C "has the format {new}"
    FORMAT_REMOVED            "format-removed"             FORMAT_ADDED               C B "no longer has the format {old}"
    FORMAT_CHANGED            "format-changed"             FORMAT_CHANGED             B B "has the format {new}, was {old}"
    FORMAT_WIDENED            "format-widened"             FORMAT_NARROWED            C B "has the format {new}, was {old}"
    FORMAT_NARROWED           "format-narrowed"            FORMAT_WIDENED             B C "has the format {new}, was {old}"
    // The next three rules are about the encoding of content as text. The sender encodes and the reader decodes, so a change breaks both.
    ENCODING_ADDED            "content-encoding-added"     ENCODING_REMOVED           B B "`{detail}` is {new}"
    ENCODING_REMOVED          "content-encoding-removed"   ENCODING_ADDED             B B "`{detail}` is gone, was {old}"
    ENCODING_CHANGED          "content-encoding-changed"   ENCODING_CHANGED           B B "`{detail}` is {new}, was {old}"
    PATTERN_ADDED             "pattern-added"              PATTERN_REMOVED            B C "must match {new}"
    PATTERN_REMOVED           "pattern-removed"            PATTERN_ADDED              C B "need no longer match {old}"
    PATTERN_CHANGED           "pattern-changed"            PATTERN_CHANGED            U U "must match {new}, was {old}"
    LIMIT_TIGHTENED           "limit-tightened"            LIMIT_LOOSENED             B C "`{detail}` is {new}, was {old}"
    LIMIT_LOOSENED            "limit-loosened"             LIMIT_TIGHTENED            C B "`{detail}` is {new}, was {old}"
    LIMIT_CHANGED             "limit-changed"              LIMIT_CHANGED              U U "`{detail}` is {new}, was {old}"
    ENUM_INTRODUCED           "enum-introduced"            ENUM_DROPPED               B C "must be one of {new}"
    ENUM_DROPPED              "enum-dropped"               ENUM_INTRODUCED            C B "may be any value, was one of {old}"
    ENUM_OPENED               "enum-opened"                ENUM_CLOSED                C B "the values are no longer a closed list"
    ENUM_CLOSED               "enum-closed"                ENUM_OPENED                B C "the values are a closed list"
    ENUM_VALUE_ADDED          "enum-value-added"           ENUM_VALUE_REMOVED         C B "may be {detail}"
    ENUM_VALUE_REMOVED        "enum-value-removed"         ENUM_VALUE_ADDED           B C "can no longer be {detail}"
    // Readers of an open list (`x-extensible-enum`) expect further values, so an added value breaks no reader. Senders depend on the listed
    // values, so a removed value breaks senders.
    OPEN_VALUE_ADDED          "open-value-added"           OPEN_VALUE_REMOVED         C C "may be {detail}, in a list that was open"
    OPEN_VALUE_REMOVED        "open-value-removed"         OPEN_VALUE_ADDED           B C "{detail} is no longer listed, in an open list"
    OPEN_LIST_ADDED           "open-list-added"            OPEN_LIST_REMOVED          C C "an open list of values is given"
    OPEN_LIST_REMOVED         "open-list-removed"          OPEN_LIST_ADDED            C C "the open list of values is gone"
    DEFAULT_ADDED             "default-added"              DEFAULT_REMOVED            U C "the default is {new}"
    DEFAULT_REMOVED           "default-removed"            DEFAULT_ADDED              U C "the default {old} is gone"
    DEFAULT_CHANGED           "default-changed"            DEFAULT_CHANGED            B C "the default is {new}, was {old}"
    DEFAULT_IDLE              "default-without-effect"     DEFAULT_IDLE               C C "the default is {new}, was {old}; it had no effect while the value was required"
    READ_ONLY_ADDED           "read-only-added"            READ_ONLY_REMOVED          B C "can only be read"
    READ_ONLY_REMOVED         "read-only-removed"          READ_ONLY_ADDED            C C "can be written too"
    WRITE_ONLY_ADDED          "write-only-added"           WRITE_ONLY_REMOVED         C B "can only be written"
    WRITE_ONLY_REMOVED        "write-only-removed"         WRITE_ONLY_ADDED           C C "can be read too"
    CONSTRAINT_ADDED          "constraint-added"           CONSTRAINT_REMOVED         B C "`{detail}` narrows what may be there"
    CONSTRAINT_REMOVED        "constraint-removed"         CONSTRAINT_ADDED           C B "`{detail}` no longer narrows what may be there"
    // Rules about the effect of a changed keyword. The comparison finds the effect from the values that the old schema and the new schema
    // accept.
    CONSTRAINT_LOOSENED       "constraint-loosened"        CONSTRAINT_TIGHTENED       C B "`{detail}` accepts more values than before"
    CONSTRAINT_TIGHTENED      "constraint-tightened"       CONSTRAINT_LOOSENED        B C "`{detail}` accepts fewer values than before"
    CONSTRAINT_MOVED          "constraint-moved"           CONSTRAINT_MOVED           B B "`{detail}` accepts values that it refused, and refuses values that it accepted"
    CONSTRAINT_ACCEPTS_MORE   "constraint-accepts-more"    CONSTRAINT_ACCEPTS_LESS    U B "`{detail}` accepts values that it refused; whether it refuses values that it accepted is unknown"
    CONSTRAINT_ACCEPTS_LESS   "constraint-accepts-less"    CONSTRAINT_ACCEPTS_MORE    B U "`{detail}` refuses values that it accepted; whether it accepts values that it refused is unknown"
    CONSTRAINT_PERHAPS_LOOSENED  "constraint-perhaps-loosened"  CONSTRAINT_PERHAPS_TIGHTENED C U "`{detail}` accepts all values that it accepted; whether it accepts more is unknown"
    CONSTRAINT_PERHAPS_TIGHTENED "constraint-perhaps-tightened" CONSTRAINT_PERHAPS_LOOSENED  U C "`{detail}` accepts no value that it refused; whether it accepts fewer is unknown"
    CONSTRAINT_CHANGED        "constraint-changed"         CONSTRAINT_CHANGED         U U "`{detail}` changed; whether it accepts other values is unknown"
    FORBIDDEN                 "value-forbidden"            PERMITTED                  B C "no value is allowed any longer"
    PERMITTED                 "value-permitted"            FORBIDDEN                  C B "values are allowed, none was"

    // Rules about objects. The rules `closed-…` are for an object that refuses undeclared properties (`additionalProperties: false`). In
    // such an object, a new property breaks responses, because the old document excluded it.
    PROPERTY_ADDED            "property-optional-added"    PROPERTY_REMOVED           C C "an optional property is new"
    PROPERTY_REMOVED          "property-optional-removed"  PROPERTY_ADDED             B B "the property is gone"
    REQUIRED_PROPERTY_ADDED   "property-required-added"    REQUIRED_PROPERTY_REMOVED  B C "a required property is new"
    REQUIRED_PROPERTY_REMOVED "property-required-removed"  REQUIRED_PROPERTY_ADDED    B B "the property, which was required, is gone"
    CLOSED_PROPERTY_ADDED     "closed-property-optional-added"   CLOSED_PROPERTY_REMOVED  C B "an optional property is new, in an object that was closed"
    CLOSED_PROPERTY_REMOVED   "closed-property-optional-removed" CLOSED_PROPERTY_ADDED    B B "the property is gone, and the object refuses it"
    CLOSED_REQUIRED_PROPERTY_ADDED   "closed-property-required-added"   CLOSED_REQUIRED_PROPERTY_REMOVED B B "a required property is new, in an object that was closed"
    CLOSED_REQUIRED_PROPERTY_REMOVED "closed-property-required-removed" CLOSED_REQUIRED_PROPERTY_ADDED   B B "the property, which was required, is gone, and the object refuses it"
    PROPERTY_BECAME_REQUIRED  "property-became-required"   PROPERTY_BECAME_OPTIONAL   B C "the property is required"
    PROPERTY_BECAME_OPTIONAL  "property-became-optional"   PROPERTY_BECAME_REQUIRED   C B "the property may be missing"
    PROPERTY_DECLARED         "property-declared"          PROPERTY_UNDECLARED        C C "the property, required before, is described"
    PROPERTY_UNDECLARED       "property-undeclared"        PROPERTY_DECLARED          C C "the property, still required, is no longer described"
    CLOSED_PROPERTY_DECLARED   "closed-property-declared"   CLOSED_PROPERTY_UNDECLARED C B "the property is described; the object required it and refused it, so no object was valid"
    CLOSED_PROPERTY_UNDECLARED "closed-property-undeclared" CLOSED_PROPERTY_DECLARED   B C "the property is required, and the object refuses it, so no object is valid"
    CLOSED_PATTERN_ADDED      "closed-pattern-added"       CLOSED_PATTERN_REMOVED     C B "`{detail}` lets in what a closed object refused"
    CLOSED_PATTERN_REMOVED    "closed-pattern-removed"     CLOSED_PATTERN_ADDED       B C "`{detail}` no longer lets anything into a closed object"
    OTHERS_ALLOWED            "additional-properties-allowed"      OTHERS_REFUSED      C B "other properties are allowed"
    OTHERS_REFUSED            "additional-properties-refused"      OTHERS_ALLOWED      B C "other properties are refused"
    OTHERS_RESTRICTED         "additional-properties-restricted"   OTHERS_UNRESTRICTED B C "other properties must fit a schema"
    OTHERS_UNRESTRICTED       "additional-properties-unrestricted" OTHERS_RESTRICTED   C B "other properties need no longer fit a schema"

    // Rules about compositions: the variants and the discriminators of `oneOf` and `anyOf`.
    VARIANT_ADDED             "variant-added"              VARIANT_REMOVED            C B "a variant is new in `{detail}`"
    VARIANT_REMOVED           "variant-removed"            VARIANT_ADDED              B C "a variant is gone from `{detail}`"
    VARIANT_LISTED            "variant-listed"             VARIANT_UNLISTED           C C "a variant is new in `{detail}`; another variant accepted its values before"
    VARIANT_UNLISTED          "variant-unlisted"           VARIANT_LISTED             C C "a variant is gone from `{detail}`; another variant accepts its values"
    // `oneOf` refuses a value that two variants accept. The rules `VARIANTS_…` report whether there are such values.
    ANY_FOR_ONE               "any-of-for-one-of"          ONE_FOR_ANY                C C "any of the variants may fit (`anyOf`), was exactly one (`oneOf`)"
    ONE_FOR_ANY               "one-of-for-any-of"          ANY_FOR_ONE                C C "exactly one of the variants must fit (`oneOf`), was any (`anyOf`)"
    VARIANTS_OVERLAP          "variants-overlap"           VARIANTS_SEPARATED         B C "more than one variant of `oneOf` accepts a value that was accepted, so it is refused"
    VARIANTS_SEPARATED        "variants-separated"         VARIANTS_OVERLAP           C B "exactly one variant of `oneOf` accepts a value that was refused because several accepted it"
    VARIANTS_MAY_OVERLAP      "variants-may-overlap"       VARIANTS_MAY_SEPARATE      U C "variants of `oneOf` may overlap where they did not; values that several variants accept are refused"
    VARIANTS_MAY_SEPARATE     "variants-may-separate"      VARIANTS_MAY_OVERLAP       C U "variants of `oneOf` may no longer overlap; values that several variants accepted were refused"
    // A discriminator makes its property required. Where all variants require that property anyway, the same values stay valid.
    DISCRIMINATOR_ADDED       "discriminator-added"        DISCRIMINATOR_REMOVED      B C "variants are distinguished by {detail}, which has to be present"
    DISCRIMINATOR_REMOVED     "discriminator-removed"      DISCRIMINATOR_ADDED        C B "variants are no longer distinguished by {detail}, which may be missing"
    DISCRIMINATOR_NAMED       "discriminator-named"        DISCRIMINATOR_UNNAMED      C C "variants are distinguished by {detail}, which was required before"
    DISCRIMINATOR_UNNAMED     "discriminator-unnamed"      DISCRIMINATOR_NAMED        C C "variants are no longer distinguished by {detail}, which is still required"
    DISCRIMINATOR_CHANGED     "discriminator-changed"      DISCRIMINATOR_CHANGED      B B "variants are distinguished by {new}, was {old}"
    MAPPING_ADDED             "discriminator-value-added"   MAPPING_REMOVED           C B "the discriminator may be {detail}"
    MAPPING_REMOVED           "discriminator-value-removed" MAPPING_ADDED             B C "the discriminator can no longer be {detail}"
    MAPPING_CHANGED           "discriminator-value-changed" MAPPING_CHANGED           B B "the discriminator {detail} means {new}, was {old}"
    // Rules about the names of schemas, and about references (`$ref`).
    TYPE_NAME_CHANGED         "type-name-changed"          TYPE_NAME_CHANGED          U U "described by {new}, was {old}; generated clients may name types after it"
    REFERENCE_BROKEN          "reference-broken"           REFERENCE_MENDED           U U "{detail} cannot be followed"
    REFERENCE_UNFOLLOWED      "reference-not-followed"     REFERENCE_UNFOLLOWED       U U "{detail} is not followed, so a change behind it is not seen"
    REFERENCE_MENDED          "reference-mended"           REFERENCE_BROKEN           U U "{detail} could not be followed before"

    // Rule about the XML form of values.
    XML_CHANGED               "xml-changed"                XML_CHANGED                B B "is written otherwise in XML: {new}, was {old}"

    // Rules for changes that no rule above covers, and for differences without effect.
    RESTATED                  "restated"                   RESTATED                   C C "`{detail}` is written differently and means the same"
    EXTENSION_ADDED           "extension-added"            EXTENSION_REMOVED          U U "`{detail}` is new"
    EXTENSION_REMOVED         "extension-removed"          EXTENSION_ADDED            U U "`{detail}` is gone"
    EXTENSION_CHANGED         "extension-changed"          EXTENSION_CHANGED          U U "`{detail}` changed"
    KEYWORD_ADDED             "keyword-added"              KEYWORD_REMOVED            U U "`{detail}` is new; no rule covers it"
    KEYWORD_REMOVED           "keyword-removed"            KEYWORD_ADDED              U U "`{detail}` is gone; no rule covers it"
    KEYWORD_CHANGED           "keyword-changed"            KEYWORD_CHANGED            U U "`{detail}` changed; no rule covers it"
    NOT_COMPARED              "not-compared"               NOT_COMPARED               U U "too large to be compared in full; only some changes are reported"
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_rule_is_the_mirror_of_its_mirror() {
        for rule in ALL {
            assert_eq!(rule.mirror.mirror, *rule, "{}", rule.id);
        }
    }

    #[test]
    fn identifiers_are_unique_and_find_their_rule() {
        let ids: HashSet<_> = ALL.iter().map(|rule| rule.id).collect();
        assert_eq!(ids.len(), ALL.len());
        assert!(ALL.iter().all(|rule| Rule::of(rule.id) == Some(*rule)));
    }
}
