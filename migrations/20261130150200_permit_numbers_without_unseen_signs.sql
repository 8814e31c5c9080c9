-- Characters that nobody sees are no part of a permit number any more, so that two numbers which look the same are the
-- same. Permits that were recorded with some are renamed, but for those that another permit, or nothing, would be left of:
-- a person has to look at them.
UPDATE permits AS p
SET permit_number = btrim(regexp_replace(p.permit_number, plain.unseen, '', 'g')), number_key = plain.key
FROM (
    SELECT DISTINCT ON (key) id, unseen, key
    FROM permits,
         LATERAL (SELECT '[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]' AS unseen) AS signs,
         LATERAL (SELECT regexp_replace(number_key, unseen, '', 'g') AS key) AS without
    WHERE number_key ~ unseen
    ORDER BY key, id
) AS plain
WHERE p.id = plain.id AND plain.key <> '' AND NOT EXISTS (SELECT FROM permits AS other WHERE other.number_key = plain.key);
