/** The program and its first arguments. The command of Postrider and its flags follow, such as `serve`. */
export declare const command: readonly [string, ...string[]];
