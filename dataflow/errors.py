"""Every error a user can see, classified by what the caller can do about it.

An error carries a `Condition`, which knows MySQL's code, SQLSTATE and message, so that the
mapping to the wire is in this one place. A broken invariant is an `assert`, not one of these.
"""

from __future__ import annotations

from enum import Enum


class Condition(Enum):
    """MySQL's (code, SQLSTATE, message template) of everything we report."""

    DB_CREATE_EXISTS = (1007, "HY000", "Can't create database '{}'; database exists")
    DB_DROP_MISSING = (1008, "HY000", "Can't drop database '{}'; database doesn't exist")
    RECORD_NOT_FOUND = (1032, "HY000", "Can't find record in '{}'")
    ACCESS_DENIED_DB = (1044, "42000", "Access denied for user '{}'@'{}' to database '{}'")
    ACCESS_DENIED = (1045, "28000", "Access denied for user '{}'@'{}' (using password: {})")
    NO_DB_SELECTED = (1046, "3D000", "No database selected")
    UNKNOWN_COMMAND = (1047, "08S01", "Unknown command")
    COLUMN_NOT_NULL = (1048, "23000", "Column '{}' cannot be null")
    UNKNOWN_DATABASE = (1049, "42000", "Unknown database '{}'")
    TABLE_EXISTS = (1050, "42S01", "Table '{}' already exists")
    UNKNOWN_TABLE_DROP = (1051, "42S02", "Unknown table '{}'")
    WRITE_ERROR = (1026, "HY000", "Error writing file '{}' ({})")
    DISK_FULL = (1021, "HY000", "Disk full ({}): less than {} MB are left; rows can be deleted, but not added or changed, until there is more")
    AMBIGUOUS_COLUMN = (1052, "23000", "Column '{}' in {} is ambiguous")
    UNKNOWN_COLUMN = (1054, "42S22", "Unknown column '{}' in '{}'")
    DUPLICATE_COLUMN = (1060, "42S21", "Duplicate column name '{}'")
    DUPLICATE_KEY_NAME = (1061, "42000", "Duplicate key name '{}'")
    DUPLICATE_ENTRY = (1062, "23000", "Duplicate entry '{}' for key '{}'")
    PARSE_ERROR = (1064, "42000", "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near '{}' at line {}")
    EMPTY_QUERY = (1065, "42000", "Query was empty")
    INVALID_DEFAULT = (1067, "42000", "Invalid default value for '{}'")
    MULTIPLE_PRIMARY_KEY = (1068, "42000", "Multiple primary key defined")
    KEY_COLUMN_MISSING = (1072, "42000", "Key column '{}' doesn't exist in table")
    WRONG_AUTO_KEY = (1075, "42000", "Incorrect table definition; there can be only one auto column and it must be defined as a key")
    CANT_DROP_FIELD_OR_KEY = (1091, "42000", "Can't DROP '{}'; check that column/key exists")
    UNKNOWN_THREAD = (1094, "HY000", "Unknown thread id: {}")
    UNKNOWN_ERROR = (1105, "HY000", "{}")
    INVALID_GROUP_FUNCTION = (1111, "HY000", "Invalid use of group function")
    TOO_BIG_ROW = (1118, "42000", "Row size too large. The maximum row size for the used table type, not counting BLOBs, is {}")
    COLUMN_COUNT_MISMATCH = (1136, "21S01", "Column count doesn't match value count at row {}")
    INVALID_USE_OF_NULL = (1138, "22004", "Invalid use of NULL value")
    REGEXP_ERROR = (1139, "42000", "Got error '{}' from regexp")
    TABLE_ACCESS_DENIED = (1142, "42000", "{} command denied to user '{}'@'{}' for table '{}'")
    UNKNOWN_TABLE = (1146, "42S02", "Table '{}' doesn't exist")
    PACKET_TOO_LARGE = (1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes")
    PRIMARY_CANT_HAVE_NULL = (1171, "42000", "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE instead")
    KEY_DOES_NOT_EXIST = (1176, "42000", "Key '{}' doesn't exist in table '{}'")
    CANT_DO_DURING_COMMIT = (1180, "HY000", "Got error {} during COMMIT")
    OUTCOME_UNKNOWN = (1180, "HY000", "Got error 'shard {} lost' during COMMIT; it may or may not have happened")
    UNKNOWN_SYSTEM_VARIABLE = (1193, "HY000", "Unknown system variable '{}'")
    TRANSACTION_TOO_LARGE = (1197, "HY000", "Multi-statement transaction required more than 'max_binlog_cache_size' bytes of storage; increase this mysqld variable and try again")
    LOCK_WAIT_TIMEOUT = (1205, "HY000", "Lock wait timeout exceeded; try restarting transaction")
    SHARD_UNREACHABLE = (1205, "HY000", "Lock wait timeout exceeded; try restarting transaction (shard {} does not answer)")
    DEADLOCK = (1213, "40001", "Deadlock found when trying to get lock; try restarting transaction")
    LOCKING_UNKNOWN_TABLE = (3568, "HY000", "Unresolved table name `{}` in locking clause.")
    LOCK_NOWAIT = (3572, "HY000", "Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set.")
    SUBQUERY_MORE_THAN_ONE_ROW = (1242, "21000", "Subquery returns more than 1 row")
    WRONG_VALUE_FOR_VARIABLE = (1231, "42000", "Variable '{}' can't be set to the value of '{}'")
    READ_ONLY_VARIABLE = (1238, "HY000", "Variable '{}' is a {} variable")
    NOT_SUPPORTED_YET = (1235, "42000", "This version of millrace doesn't yet support '{}'")
    UNKNOWN_PREPARED = (1243, "HY000", "Unknown prepared statement handler ({}) given to {}")
    OUT_OF_RANGE = (1264, "22003", "Out of range value for column '{}' at row {}")
    DATA_TRUNCATED = (1265, "01000", "Data truncated for column '{}' at row {}")
    ILLEGAL_COLLATION_MIX = (1267, "HY000", "Illegal mix of collations ({}) and ({}) for operation '{}'")
    UNKNOWN_COLLATION = (1273, "HY000", "Unknown collation: '{}'")
    WRONG_TABLE_NAME = (1103, "42000", "Incorrect table name '{}'")
    QUERY_INTERRUPTED = (1317, "70100", "Query execution was interrupted")
    TRUNCATED_WRONG_VALUE = (1292, "22007", "Incorrect {} value: '{}' for column '{}' at row {}")
    INCORRECT_MOMENT = (1292, "22007", "Incorrect {} value: '{}'")
    TRUNCATED_VALUE = (1292, "22007", "Truncated incorrect {} value: '{}'")
    SAVEPOINT_MISSING = (1305, "42000", "SAVEPOINT {} does not exist")
    NO_DEFAULT = (1364, "HY000", "Field '{}' doesn't have a default value")
    DIVISION_BY_ZERO = (1365, "22012", "Division by 0")
    INCORRECT_VALUE = (1366, "HY000", "Incorrect {} value: '{}' for column '{}' at row {}")
    DATA_TOO_LONG = (1406, "22001", "Data too long for column '{}' at row {}")
    TABLE_DEFINITION_CHANGED = (1412, "HY000", "Table definition has changed, please retry transaction")
    DATETIME_OVERFLOW = (1441, "22008", "Datetime function: {} field overflow")
    AUTO_INCREMENT_EXHAUSTED = (1467, "HY000", "Failed to read auto-increment value from storage engine")
    ROW_IS_REFERENCED = (1451, "23000", "Cannot delete or update a parent row: a foreign key constraint fails ({})")
    NO_REFERENCED_ROW = (1452, "23000", "Cannot add or update a child row: a foreign key constraint fails ({})")
    WRONG_ARGUMENT_COUNT = (1582, "42000", "Incorrect parameter count in the call to native function '{}'")
    UNKNOWN_FUNCTION = (1305, "42000", "FUNCTION {} does not exist")
    VALUE_OUT_OF_RANGE = (1690, "22003", "{} value is out of range in '{}'")
    TRUNCATE_REFERENCED = (1701, "42000", "Cannot truncate a table referenced in a foreign key constraint ({})")
    CHECK_VIOLATED = (3819, "HY000", "Check constraint '{}' is violated.")
    INVALID_JSON = (3140, "22032", "Invalid JSON text: \"{}\" at position {} in value for column '{}'.")
    INVALID_JSON_ARGUMENT = (3141, "22032", "Invalid JSON text in argument {} to function {}: \"{}\" at position {}.")
    INVALID_JSON_CHARSET = (3144, "22032", "Cannot create a JSON value from a string with CHARACTER SET '{}'.")
    TOO_MANY_PREPARED = (1461, "42000", "Can't create more than max_prepared_stmt_count statements (current value: {})")
    WRONG_ARGUMENTS = (1210, "HY000", "Incorrect arguments to {}")
    WRONG_VALUE_FOR_FUNCTION = (1411, "HY000", "Incorrect {} value: '{}' for function {}")
    INVALID_JSON_PATH = (3143, "42000", "Invalid JSON path expression. The error is around character position {}.")
    INVALID_JSON_TYPE = (3146, "22032", "Invalid data type for JSON data in argument {} to function {}; a JSON string or JSON type is required.")
    JSON_PATH_WILDCARD = (3149, "42000", "In this situation, path expressions may not contain the * and ** tokens or an array range.")
    JSON_PATH_ROOT = (3153, "42000", "The path expression '$' is not allowed in this context.")
    JSON_ONE_OR_ALL = (3154, "42000", "The oneOrAll argument to {} may take these values: 'one' or 'all'.")
    JSON_NULL_KEY = (3158, "22032", "JSON documents may not contain NULL member names.")
    JSON_PATH_NO_CELL = (3165, "42000", "A path expression is not a path to a cell in an array.")
    INVALID_REGULAR_EXPRESSION = (3685, "HY000", "Illegal argument to a regular expression.")
    REGULAR_EXPRESSION_INDEX = (3686, "HY000", "Index out of bounds in regular expression search.")
    COLUMN_COUNT_IN_VIEW = (1353, "HY000", "In definition of view, derived table or common table expression, SELECT list and column names list have different column counts")
    TOO_MANY_CONNECTIONS = (1040, "08004", "Too many connections")
    SERVER_SHUTDOWN = (1053, "08S01", "Server shutdown in progress")

    HANDSHAKE_ERROR = (1043, "08S01", "Bad handshake")
    UNKNOWN_CHARACTER_SET = (1115, "42000", "Unknown character set: '{}'")
    PACKETS_OUT_OF_ORDER = (1156, "08S01", "Got packets out of order")
    WRONG_TYPE_FOR_VARIABLE = (1232, "42000", "Incorrect argument type to variable '{}'")
    COLLATION_CHARSET_MISMATCH = (1253, "42000", "COLLATION '{}' is not valid for CHARACTER SET '{}'")
    LOCAL_VARIABLE = (1228, "HY000", "Variable '{}' is a SESSION variable and can't be used with SET GLOBAL")
    GLOBAL_VARIABLE = (1229, "HY000", "Variable '{}' is a GLOBAL variable and should be set with SET GLOBAL")
    MALFORMED_PACKET = (1835, "HY000", "Malformed communication packet.")
    UNKNOWN_TIME_ZONE = (1298, "HY000", "Unknown or incorrect time zone: '{}'")
    WRONG_LOCK_NAME = (3057, "42000", "Incorrect user-level lock name '{}'.")
    CURSOR_MISSING = (1325, "24000", "Cursor is not open")

    IDENTIFIER_TOO_LONG = (1059, "42000", "Identifier name '{}' is too long")
    NOT_IN_GROUP_BY = (1055, "42000", "Expression #{} of {} is not in GROUP BY clause and contains nonaggregated column '{}' which is not functionally dependent on columns in GROUP BY clause; this is incompatible with sql_mode=only_full_group_by")
    CANT_GROUP_ON = (1056, "42000", "Can't group on '{}'")
    WRONG_COLUMN_SPECIFIER = (1063, "42000", "Incorrect column specifier for column '{}'")
    COLUMN_TOO_LONG = (1074, "42000", "Column length too big for column '{}' (max = {}); use BLOB or TEXT instead")
    WRONG_PREFIX_KEY = (1089, "HY000", "Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or the storage engine doesn't support unique prefix keys")
    CANT_REMOVE_ALL_COLUMNS = (1090, "42000", "You can't delete all columns with ALTER TABLE; use DROP TABLE instead")
    NO_TABLES_USED = (1096, "HY000", "No tables used")
    BLOB_DEFAULT = (1101, "42000", "BLOB, TEXT, GEOMETRY or JSON column '{}' can't have a default value")
    WRONG_DATABASE_NAME = (1102, "42000", "Incorrect database name '{}'")
    COLUMN_SPECIFIED_TWICE = (1110, "42000", "Column '{}' specified twice")
    TABLE_WITHOUT_COLUMNS = (1113, "42000", "A table must have at least 1 column")
    TOO_MANY_COLUMNS = (1117, "42000", "Too many columns")
    MIXED_GROUPING = (1140, "42000", "In aggregated query without GROUP BY, expression #{} of {} contains nonaggregated column '{}'; this is incompatible with sql_mode=only_full_group_by")
    WRONG_COLUMN_NAME = (1166, "42000", "Incorrect column name '{}'")
    BLOB_KEY_WITHOUT_LENGTH = (1170, "42000", "BLOB/TEXT column '{}' used in key specification without a key length")
    WRONG_USAGE = (1221, "HY000", "Incorrect usage of {} and {}")
    OPERAND_COLUMNS = (1241, "21000", "Operand should contain {} column(s)")
    DERIVED_NEEDS_ALIAS = (1248, "42000", "Every derived table must have its own alias")
    TOO_MANY_ROWS = (1172, "42000", "Result consisted of more than one row")
    NO_DATA = (1329, "02000", "No data - zero rows fetched, selected, or processed")
    SECURE_FILES = (1290, "HY000", "The MySQL server is running with the --secure-file-priv option so it cannot execute this statement")
    NO_FULL_TEXT_INDEX = (1191, "HY000", "Can't find FULLTEXT index matching the column list")
    SET_COLUMN_COUNT = (1222, "21000", "The used SELECT statements have a different number of columns")
    CTE_NEEDS_UNION = (3573, "HY000", "Recursive Common Table Expression '{}' should contain a UNION")
    CTE_NEEDS_FIRST = (3574, "HY000", "Recursive Common Table Expression '{}' should have one or more non-recursive query blocks followed by one or more recursive ones")
    CTE_AGGREGATES = (3575, "HY000", "Recursive Common Table Expression '{}' can contain neither aggregation nor window functions in recursive query block")
    CTE_OUTER_JOIN = (3576, "HY000", "In recursive query block of Recursive Common Table Expression '{}', the recursive table must neither be in the right argument of a LEFT JOIN, nor be forced to be non-first with join order hints")
    CTE_TWICE = (3577, "HY000", "In recursive query block of Recursive Common Table Expression '{}', the recursive table must be referenced only once, and not in any subquery")
    CTE_DEPTH = (3636, "HY000", "Recursive query aborted after {} iterations. Try increasing @@cte_max_recursion_depth to a larger value.")
    WINDOW_UNKNOWN = (3579, "HY000", "Window name '{}' is not defined.")
    WINDOW_FRAME_START = (3584, "HY000", "Window '{}': frame start cannot be UNBOUNDED FOLLOWING.")
    WINDOW_FRAME_END = (3585, "HY000", "Window '{}': frame end cannot be UNBOUNDED PRECEDING.")
    WINDOW_FRAME = (3586, "HY000", "Window '{}': frame start or end is negative, NULL or of non-integral type")
    WINDOW_RANGE_ORDER = (3587, "HY000", "Window '{}' with RANGE N PRECEDING/FOLLOWING frame requires exactly one ORDER BY expression, of numeric or temporal type")
    WINDOW_RANGE_TEMPORAL = (3588, "HY000", "Window '{}' with RANGE frame has ORDER BY expression of datetime type. Only INTERVAL bound value allowed.")
    WINDOW_RANGE_NUMERIC = (3589, "HY000", "Window '{}' with RANGE frame has ORDER BY expression of numeric type, INTERVAL bound value not allowed.")
    WINDOW_MISPLACED = (3593, "HY000", "You cannot use the window function '{}' in this context.")
    ORDER_NOT_IN_DISTINCT = (3065, "HY000", "Expression #{} of ORDER BY clause is not in SELECT list, references column '{}' which is not in SELECT list; this is incompatible with DISTINCT")
    UNKNOWN_TABLE_MULTI_DELETE = (1109, "42S02", "Unknown table '{}' in MULTI DELETE")
    NON_UPDATABLE_TABLE = (1288, "HY000", "The target table {} of the {} is not updatable")
    VIEW_INVALID = (1356, "HY000", "View '{}.{}' references invalid table(s) or column(s) or function(s) or definer/invoker of view lack rights to use them")
    WRONG_OBJECT = (1347, "HY000", "'{}.{}' is not {}")
    VIEW_PARAMETER = (1351, "HY000", "View's SELECT contains a variable or parameter")
    STACK_OVERRUN = (1436, "HY000", "Thread stack overrun:  {} bytes used of a {} byte stack, and {} bytes needed.  The statement is nested too deeply.")
    VIEW_RECURSION = (1462, "HY000", "`{}`.`{}` contains view recursion")
    NOT_THREAD_OWNER = (1095, "HY000", "You are not owner of thread {}")
    NO_SUCH_GRANT = (1141, "42000", "There is no such grant defined for user '{}' on host '{}'")
    NO_SUCH_TABLE_GRANT = (1147, "42000", "There is no such grant defined for user '{}' on host '{}' on table '{}'")
    ILLEGAL_GRANT = (1144, "42000", "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be used")
    PASSWORD_NO_MATCH = (1133, "42000", "Can't find any matching row in the user table")
    SPECIFIC_ACCESS_DENIED = (1227, "42000", "Access denied; you need (at least one of) the {} privilege(s) for this operation")
    CANNOT_REVOKE_ALL = (1269, "HY000", "Can't revoke all privileges for one or more of the requested users")
    CANNOT_USER = (1396, "HY000", "Operation {} failed for {}")
    CANNOT_CREATE_BY_GRANT = (1410, "42000", "You are not allowed to create a user with GRANT")
    STRING_TOO_LONG = (1470, "HY000", "String '{}' is too long for {} (should be no longer than {})")
    PLUGIN_MISSING = (1524, "HY000", "Plugin '{}' is not loaded")
    PASSWORD_FORMAT = (1827, "HY000", "The password hash doesn't have the expected format.")
    MUST_CHANGE_PASSWORD = (1820, "HY000", "You must reset your password using ALTER USER statement before executing this statement.")
    PASSWORD_EXPIRED = (1862, "HY000", "Your password has expired. To log in you must change it using a client that supports expired passwords.")
    UNKNOWN_AUTHORIZATION = (3523, "HY000", "Unknown authorization ID {}")
    ROLE_LOOP = (3527, "HY000", "User account {} is directly or indirectly granted to the role {}. The GRANT would create a loop")
    ROLE_NOT_GRANTED = (3530, "HY000", "{} is not granted to {}")
    ACCOUNT_LOCKED = (3118, "HY000", "Access denied for user '{}'@'{}'. Account is locked.")
    USER_MISSING = (3162, "HY000", "Authorization ID {} does not exist.")
    USER_EXISTS = (3163, "HY000", "Authorization ID {} already exists.")
    TRANSACTION_IN_PROGRESS = (1568, "25001", "Transaction characteristics can't be changed while a transaction is in progress")
    READ_ONLY_TRANSACTION = (1792, "25006", "Cannot execute statement in a READ ONLY transaction.")
    WRONG_FIELD_TERMINATORS = (1083, "42000", "Field separator argument is not what is expected; check the manual")
    ROW_TOO_SHORT = (1261, "01000", "Row {} doesn't contain data for all columns")
    ROW_TOO_LONG = (1262, "01000", "Row {} was truncated; it contained more data than there were input columns")
    NOT_PREPARABLE = (1295, "HY000", "This command is not supported in the prepared statement protocol yet")
    LOCAL_INFILE_DISABLED = (3948, "42000", "Loading local data is disabled; this must be enabled on both the client and server sides")
    UNKNOWN_EXPLAIN_FORMAT = (1791, "HY000", "Unknown EXPLAIN format name: '{}'")
    NONUNIQUE_TABLE = (1066, "42000", "Not unique table/alias: '{}'")
    WRONG_INDEX_NAME = (1280, "42000", "Incorrect index name '{}'")
    DUPLICATE_MEMBER = (1291, "HY000", "Column '{}' has duplicated value '{}' in {}")
    INVALID_ON_UPDATE = (1294, "HY000", "Invalid ON UPDATE clause for '{}' column")
    SCALE_TOO_BIG = (1425, "42000", "Too big scale {} specified for column '{}'. Maximum is {}.")
    PRECISION_TOO_BIG = (1426, "42000", "Too-big precision {} specified for '{}'. Maximum is {}.")
    SCALE_ABOVE_PRECISION = (1427, "42000", "For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{}').")
    DISPLAY_WIDTH_TOO_BIG = (1439, "42000", "Display width out of range for column '{}' (max = {})")
    INDEX_NEEDED_BY_FOREIGN_KEY = (1553, "HY000", "Cannot drop index '{}': needed in a foreign key constraint")
    CANNOT_ADD_FOREIGN = (1215, "HY000", "Cannot add foreign key constraint")
    FOREIGN_COLUMN_NOT_NULL = (1830, "HY000", "Column '{}' cannot be NOT NULL: needed in a foreign key constraint '{}' SET NULL")
    PARENT_INDEX_MISSING = (1822, "HY000", "Failed to add the foreign key constraint. Missing index for constraint '{}' in the referenced table '{}'")
    PARENT_TABLE_MISSING = (1824, "HY000", "Failed to open the referenced table '{}'")
    DUPLICATE_FOREIGN_KEY = (1826, "HY000", "Duplicate foreign key constraint name '{}'")
    COLUMN_NEEDED_BY_FOREIGN_KEY = (1828, "HY000", "Cannot drop column '{}': needed in a foreign key constraint '{}'")
    COLUMN_NEEDED_BY_CHILD = (1829, "HY000", "Cannot drop column '{}': needed in a foreign key constraint '{}' of table '{}'")
    COLUMN_IN_FOREIGN_KEY = (1832, "HY000", "Cannot change column '{}': used in a foreign key constraint '{}'")
    COLUMN_IN_CHILD_KEY = (1833, "HY000", "Cannot change column '{}': used in a foreign key constraint '{}' of table '{}'")
    FUNCTIONAL_PRIMARY_KEY = (3756, "HY000", "The primary key cannot be a functional index")
    GENERATED_VALUE = (3105, "HY000", "The value specified for generated column '{}' in table '{}' is not allowed.")
    GENERATED_DEPENDENCY = (3108, "HY000", "Column '{}' has a generated column dependency.")
    TABLE_IS_REFERENCED = (3730, "HY000", "Cannot drop table '{}' referenced by a foreign key constraint '{}' on table '{}'.")
    FOREIGN_KEY_INCOMPATIBLE = (3780, "HY000", "Referencing column '{}' and referenced column '{}' in foreign key constraint '{}' are incompatible.")
    CHECK_MISSING = (3821, "HY000", "Check constraint '{}' is not found in the table.")
    DUPLICATE_CHECK = (3822, "HY000", "Duplicate check constraint name '{}'.")
    CONSTRAINT_MISSING = (3940, "HY000", "Constraint '{}' does not exist.")

    @property
    def code(self) -> int:
        return int(self.value[0])

    @property
    def sqlstate(self) -> str:
        return str(self.value[1])

    @property
    def template(self) -> str:
        return str(self.value[2])


class MillraceError(Exception):
    """An error with a MySQL condition; the subclass says what the caller can do."""

    def __init__(self, condition: Condition, *arguments: object) -> None:
        self.condition = condition
        self.arguments = tuple(str(argument) for argument in arguments)
        super().__init__(condition.template.format(*self.arguments))


class InvalidStatement(MillraceError):
    """The statement or its values are wrong; the same statement will fail again."""


class Unsupported(MillraceError):
    """Valid MySQL that we cannot run; said when the statement is planned, never later."""

    def __init__(self, feature: object) -> None:
        super().__init__(Condition.NOT_SUPPORTED_YET, feature)


class Retryable(MillraceError):
    """Nothing was changed and the same statement may succeed when sent again."""


class CorruptState(MillraceError):
    """Stored bytes do not decode. Nothing is guessed; an operator has to look."""

    def __init__(self, detail: object) -> None:
        super().__init__(Condition.UNKNOWN_ERROR, f"corrupt state: {detail}")
