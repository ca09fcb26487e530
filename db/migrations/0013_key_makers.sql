-- Id of the member or key that made the key; NULL: the command line, the first start, or a version before this step.
ALTER TABLE api_keys ADD COLUMN created_by TEXT;
