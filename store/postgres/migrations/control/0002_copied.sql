-- +goose Up

-- Why nobody may write: where the store was copied to, which is used in its place. NULL if it was not.
ALTER TABLE meta ADD COLUMN frozen text;

-- Refuses whoever writes to a table. Tables have it as a trigger while they are not to be written; who
-- copies into them has set dialai.copies.
-- +goose StatementBegin
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    is_frozen text;
BEGIN
    SELECT frozen INTO is_frozen FROM meta;
    IF is_frozen IS NOT NULL AND current_setting('dialai.copies', true) IS DISTINCT FROM 'on' THEN
        RAISE EXCEPTION 'it was copied to %, which is used in its place', is_frozen USING ERRCODE = 'DI001', DETAIL = is_frozen;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
